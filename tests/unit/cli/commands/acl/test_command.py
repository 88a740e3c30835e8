"""How `kafscale acl` prints ACLs."""

from kafscale.cli.commands.acl.command import print_acls
from kafscale.cli.commands.acl.request import AclRequest, principal_entries
from kafscale.metadata.access.model import Operation, PatternType, Permission

ALICE = principal_entries(Permission.ALLOW, ["User:alice"])


def test_acls_are_grouped_by_resource_and_principal(capsys):
    acls = [
        *AclRequest(topics=["orders"], groups=["billing"], entries=ALICE, consumer=True).to_acls(),
        *AclRequest(
            topics=["orders"],
            entries=principal_entries(Permission.DENY, ["User:eve"], ["10.0.0.7"]),
        ).to_acls(),
        *AclRequest(
            topics=["shop-"],
            pattern=PatternType.PREFIXED,
            entries=ALICE,
            operations=[Operation.ADMIN],
        ).to_acls(),
    ]
    print_acls(acls)
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows == [
        "Topic orders name User:alice allow Read, Describe any",
        "User:eve deny All 10.0.0.7",
        "Topic shop- prefix User:alice allow role admin any",
        "Group billing name User:alice allow Read any",
    ]


def test_empty_list_names_the_command_to_add_acls(capsys):
    print_acls([])
    assert "kafscale acl add" in capsys.readouterr().out
