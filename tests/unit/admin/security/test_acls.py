"""Rules, as the handlers of a broker keep them."""

import pytest

from kafscale.admin.security import acls as acl_admin
from kafscale.cli.commands.acl.rules import Wanted, parties
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import Acl, Operation, PatternType, Permission, ResourceType
from kafscale.security.acl.filter import AclFilter
from unit.cli.served_client import GUARDED, OPEN, on_broker

ALICE = parties(Permission.ALLOW, ["User:alice"])


def test_rules_are_added_found_and_removed():
    async def story(client):
        made = Wanted(topics=["orders"], groups=["billing"], parties=ALICE, consumer=True).rules()
        denied = Wanted(
            topics=["ord"],
            pattern=PatternType.PREFIXED,
            parties=parties(Permission.DENY, ["User:eve"], ["10.0.0.7"]),
        ).rules()
        await acl_admin.add(client, made + denied)
        assert await acl_admin.find(client, [AclFilter()]) == sorted(made + denied)
        bearing = Wanted(topics=["orders"], pattern=PatternType.MATCH).filters()
        assert await acl_admin.find(client, bearing) == sorted(made[:2] + denied)
        about = Wanted(parties=ALICE).filters()
        assert await acl_admin.find(client, about) == sorted(made)

        await acl_admin.remove(client, made)
        assert await acl_admin.find(client, [AclFilter(), *about]) == denied
        await acl_admin.remove(client, made)  # What is gone is gone.

    on_broker(story)


def test_a_role_is_one_rule():
    async def story(client):
        made = Wanted(topics=["orders"], parties=ALICE, operations=[Operation.PRODUCER]).rules()
        await acl_admin.add(client, made)
        (found,) = await acl_admin.find(client, [AclFilter()])
        assert found.operation is Operation.PRODUCER
        assert acl_admin.words(found) == "allow User:alice role producer on Topic orders"

    on_broker(story)


def test_what_could_not_be_added_is_told_and_the_others_are_there():
    async def story(client):
        good = Wanted(topics=["orders"], parties=ALICE).rules()
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

    on_broker(story)


def test_where_there_are_no_rules_it_is_told_what_to_set():
    async def story(client):
        with pytest.raises(KafscaleError, match=r"KAFSCALE_AUTHORIZATION_ENABLED=true"):
            await acl_admin.find(client, [AclFilter()])
        with pytest.raises(KafscaleError, match=r"authorization\.enabled"):
            await acl_admin.add(client, Wanted(topics=["orders"], parties=ALICE).rules())

    on_broker(story, OPEN)


def test_who_may_not_is_told_who_may():
    async def story(client):
        rules = Wanted(topics=["a"], parties=ALICE, operations=[Operation.READ]).rules()
        with pytest.raises(KafscaleError, match=r"authorization\.superUsers"):
            await acl_admin.add(client, rules)
        with pytest.raises(KafscaleError, match=r"authorization\.superUsers"):
            await acl_admin.remove(client, rules)

    on_broker(story, GUARDED)


def test_a_rule_is_data_in_the_words_of_kafka():
    (rule,) = Wanted(topics=["orders"], parties=ALICE, operations=[Operation.ALTER_CONFIGS]).rules()
    assert acl_admin.data(rule) == {
        "resourceType": "TOPIC",
        "resourceName": "orders",
        "patternType": "LITERAL",
        "principal": "User:alice",
        "host": "*",
        "operation": "ALTER_CONFIGS",
        "permission": "ALLOW",
    }
