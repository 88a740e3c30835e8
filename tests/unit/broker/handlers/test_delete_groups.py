"""DeleteGroups: groups without members only."""

import pytest

from doubles import virtual_time
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from kafscale.protocol.messages.offset_commit import PartitionToCommit
from unit.broker.handlers.group_members import GROUP, ConsumerMember, Member, form_generation
from unit.broker.handlers.offset_commits import commit
from unit.broker.in_memory_broker import ADMIN_DISABLED, Stores, run_with_broker, running_broker

every_version = pytest.mark.parametrize("version", DELETE_GROUPS.versions)


async def delete(broker, version, *group_ids):
    response = await broker.ask(DELETE_GROUPS, DeleteGroupsRequest(list(group_ids)), version)
    return [(group.group_id, ErrorCode.of(group.error_code)) for group in response.groups]


@every_version
def test_each_group_succeeds_or_fails_on_its_own(version):
    async def body(broker):
        topic = await broker.topic("orders")
        for group_id in ("simple", ""):
            await commit(broker, topic, PartitionToCommit(0, 5), group_id=group_id)
        await form_generation(Member(broker, group_id="classic"))
        member = await form_generation(Member(broker, group_id="left"))
        await member.leave()
        await ConsumerMember(broker, "one").join("orders")
        requested = ("simple", "", "classic", GROUP, "left", "missing")

        assert await delete(broker, version, *requested) == [
            ("simple", ErrorCode.NONE),
            ("", ErrorCode.NONE),
            ("classic", ErrorCode.NON_EMPTY_GROUP),
            (GROUP, ErrorCode.NON_EMPTY_GROUP),
            ("left", ErrorCode.NONE),
            ("missing", ErrorCode.GROUP_ID_NOT_FOUND),
        ]
        left = {record.group_id for record in broker.services.groups.list()}
        assert left == {"classic", GROUP}

    run_with_broker(body)


@every_version
def test_duplicate_group_is_deleted_once(version):
    async def body(broker):
        topic = await broker.topic("orders")
        await commit(broker, topic, PartitionToCommit(0, 5))

        assert await delete(broker, version, GROUP, GROUP) == [(GROUP, ErrorCode.NONE)]
        assert await delete(broker, version, GROUP) == [(GROUP, ErrorCode.GROUP_ID_NOT_FOUND)]

    run_with_broker(body)


@every_version
def test_deletion_survives_a_broker_restart(version):
    async def scenario(_random):
        stores = Stores()
        async with running_broker(stores) as broker:
            topic = await broker.topic("orders")
            await commit(broker, topic, PartitionToCommit(0, 5))
            await delete(broker, version, GROUP)
        async with running_broker(stores) as broker:
            assert not broker.services.groups.list()
            assert not broker.services.groups.fetch(GROUP, None, -1)

    virtual_time.run(scenario, seed=0)


@every_version
def test_delete_groups_is_refused_if_admin_is_disabled(version):
    async def body(broker):
        topic = await broker.topic("orders")
        await commit(broker, topic, PartitionToCommit(0, 5))

        assert await delete(broker, version, GROUP) == [(GROUP, ErrorCode.POLICY_VIOLATION)]
        assert [record.group_id for record in broker.services.groups.list()] == [GROUP]

    run_with_broker(body, config=ADMIN_DISABLED)
