"""Rules as people see them."""

from kafscale.cli.commands.acl import tables
from kafscale.cli.commands.acl.rules import Wanted, parties
from kafscale.cli.commands.user import tables as user_tables
from kafscale.metadata.access.model import Operation, PatternType, Permission

ALICE = parties(Permission.ALLOW, ["User:alice"])


def test_rules_are_shown_by_resource_and_what_somebody_may_do_in_one_row(capsys):
    rules = [
        *Wanted(topics=["orders"], groups=["billing"], parties=ALICE, consumer=True).rules(),
        *Wanted(
            topics=["orders"], parties=parties(Permission.DENY, ["User:eve"], ["10.0.0.7"])
        ).rules(),
        *Wanted(
            topics=["shop-"],
            pattern=PatternType.PREFIXED,
            parties=ALICE,
            operations=[Operation.ADMIN],
        ).rules(),
    ]
    tables.print_rules(rules)
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows == [
        "Topic orders name User:alice may Read, Describe anywhere",
        "User:eve must not All 10.0.0.7",
        "Topic shop- prefix User:alice may role admin anywhere",
        "Group billing name User:alice may Read anywhere",
    ]


def test_where_there_are_none_it_is_told_how_to_make_some(capsys):
    tables.print_rules([])
    user_tables.print_list([])
    told = capsys.readouterr().out
    assert "kafscale acl add" in told
    assert "kafscale user create" in told


def test_a_user_is_told_what_to_set(capsys):
    user_tables.print_login('al"ice', "SCRAM-SHA-512", "SASL_SSL")
    told = capsys.readouterr().out
    assert "security.protocol=SASL_SSL" in told
    assert r'ScramLoginModule required username="al\"ice" password="...";' in told
