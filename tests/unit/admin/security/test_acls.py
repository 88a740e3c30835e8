"""ACLs, against the handlers of a broker."""

import msgspec
import pytest

from kafscale.admin.security import acls as acl_admin
from kafscale.cli.commands.acl.request import AclRequest, principal_entries
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import Acl, Operation, PatternType, Permission, ResourceType
from kafscale.security.acl.filter import AclFilter
from unit.cli.in_memory_client import AS_NORMAL_USER, WITHOUT_AUTHORIZATION, on_broker

ALICE = principal_entries(Permission.ALLOW, ["User:alice"])


def test_acls_are_added_found_and_removed():
    async def scenario(client):
        added = AclRequest(
            topics=["orders"], groups=["billing"], entries=ALICE, consumer=True
        ).to_acls()
        denied = AclRequest(
            topics=["ord"],
            pattern=PatternType.PREFIXED,
            entries=principal_entries(Permission.DENY, ["User:eve"], ["10.0.0.7"]),
        ).to_acls()
        await acl_admin.add(client, added + denied)
        assert await acl_admin.find(client, [AclFilter()]) == sorted(added + denied)
        bearing = AclRequest(topics=["orders"], pattern=PatternType.MATCH).to_filters()
        assert await acl_admin.find(client, bearing) == sorted(added[:2] + denied)
        about = AclRequest(entries=ALICE).to_filters()
        assert await acl_admin.find(client, about) == sorted(added)

        await acl_admin.remove(client, added)
        assert await acl_admin.find(client, [AclFilter(), *about]) == denied
        await acl_admin.remove(client, added)  # Removing them again is no error.

    on_broker(scenario)


def test_role_is_one_acl():
    async def scenario(client):
        added = AclRequest(
            topics=["orders"], entries=ALICE, operations=[Operation.PRODUCER]
        ).to_acls()
        await acl_admin.add(client, added)
        (acl,) = await acl_admin.find(client, [AclFilter()])
        assert acl.operation is Operation.PRODUCER
        assert acl_admin.format_acl(acl) == "allow User:alice role producer on Topic orders"

    on_broker(scenario)


def test_add_reports_failed_acls_and_adds_the_others():
    async def scenario(client):
        good = AclRequest(topics=["orders"], entries=ALICE).to_acls()
        bad = Acl(
            ResourceType.CLUSTER,
            PatternType.LITERAL,
            "other",
            "User:alice",
            "*",
            Operation.ALTER,
            Permission.ALLOW,
        )
        with pytest.raises(KafscaleError, match="allow User:alice Alter on Cluster other: "):
            await acl_admin.add(client, [*good, bad])
        assert await acl_admin.find(client, [AclFilter()]) == good

    on_broker(scenario)


def test_disabled_authorization_says_what_to_set():
    async def scenario(client):
        with pytest.raises(KafscaleError, match=r"KAFSCALE_AUTHORIZATION_ENABLED=true"):
            await acl_admin.find(client, [AclFilter()])
        with pytest.raises(KafscaleError, match=r"authorization\.enabled"):
            await acl_admin.add(client, AclRequest(topics=["orders"], entries=ALICE).to_acls())

    on_broker(scenario, WITHOUT_AUTHORIZATION)


def test_authorization_error_says_who_is_allowed():
    async def scenario(client):
        rules = AclRequest(topics=["a"], entries=ALICE, operations=[Operation.READ]).to_acls()
        with pytest.raises(KafscaleError, match=r"authorization\.superUsers"):
            await acl_admin.add(client, rules)
        with pytest.raises(KafscaleError, match=r"authorization\.superUsers"):
            await acl_admin.remove(client, rules)

    on_broker(scenario, AS_NORMAL_USER)


def test_acl_info_has_kafkas_names():
    (rule,) = AclRequest(
        topics=["orders"], entries=ALICE, operations=[Operation.ALTER_CONFIGS]
    ).to_acls()
    assert msgspec.to_builtins(acl_admin.acl_info(rule)) == {
        "resourceType": "TOPIC",
        "resourceName": "orders",
        "patternType": "LITERAL",
        "principal": "User:alice",
        "host": "*",
        "operation": "ALTER_CONFIGS",
        "permission": "ALLOW",
    }
