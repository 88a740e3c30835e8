"""ListGroups: all groups, or those of some states and types."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from kafscale.protocol.messages.offset_commit import PartitionToCommit
from unit.broker.handlers.group_members import GROUP, ConsumerMember, Member, form_generation
from unit.broker.handlers.offset_commits import commit
from unit.broker.in_memory_broker import run_with_broker


async def prepare(broker):
    """A classic group that is stable, one of the consumer protocol, and one with offsets only."""
    topic = await broker.topic("orders")
    await commit(broker, topic, PartitionToCommit(0, 5), group_id="simple")
    await form_generation(Member(broker, group_id="classic"))
    member = ConsumerMember(broker, "one")
    await member.join("orders")
    await member.confirm()


async def names(broker, states=(), types=()):
    request = ListGroupsRequest(list(states), list(types))
    response = await broker.ask(LIST_GROUPS, request)
    return {group.group_id for group in response.groups}


@pytest.mark.parametrize("version", LIST_GROUPS.versions)
def test_groups_are_listed_with_the_fields_of_the_version(version):
    async def body(broker):
        await prepare(broker)
        response = await broker.ask(LIST_GROUPS, ListGroupsRequest(), version)

        assert response.error_code == ErrorCode.NONE
        listed = {
            (group.group_id, group.protocol_type, group.group_state, group.group_type)
            for group in response.groups
        }
        has_state, has_type = version >= 4, version >= 5
        assert listed == {
            ("simple", "", "Empty" * has_state, "classic" * has_type),
            ("classic", "consumer", "Stable" * has_state, "classic" * has_type),
            (GROUP, "consumer", "Stable" * has_state, "consumer" * has_type),
        }

    run_with_broker(body)


def test_state_and_type_filters_ignore_case():
    async def body(broker):
        await prepare(broker)

        assert await names(broker, states=["sTABLE"]) == {"classic", GROUP}
        assert await names(broker, states=["Empty", "Dead"]) == {"simple"}
        assert await names(broker, types=["Classic"]) == {"simple", "classic"}
        assert await names(broker, types=["consumer", "share"]) == {GROUP}
        assert await names(broker, states=["stable"], types=["CLASSIC"]) == {"classic"}
        assert await names(broker, states=["unheard of"]) == set()
        assert await names(broker, types=["unheard of"]) == set()

    run_with_broker(body)


@pytest.mark.parametrize("version", LIST_GROUPS.versions)
def test_stopping_broker_lists_nothing(version):
    async def body(broker):
        await prepare(broker)
        broker.services.groups.shut_down()
        response = await broker.ask(LIST_GROUPS, ListGroupsRequest(), version)

        assert (response.error_code, response.groups) == (ErrorCode.NOT_COORDINATOR, [])

    run_with_broker(body)
