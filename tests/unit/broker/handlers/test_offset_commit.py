"""OffsetCommit: stored offsets, members and versions."""

import asyncio
import dataclasses

import pytest

from doubles import virtual_time
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    PartitionToCommit,
)
from unit.broker.handlers.group_members import GROUP, ConsumerMember, Member, form_generation
from unit.broker.handlers.offset_commits import MISSING, commit
from unit.broker.in_memory_broker import CONFIG, Stores, run_with_broker, running_broker

OK = ErrorCode.NONE
SMALL_METADATA = dataclasses.replace(
    CONFIG, offsets=dataclasses.replace(CONFIG.offsets, metadata_bytes_max=4)
)

every_version = pytest.mark.parametrize("version", OFFSET_COMMIT.versions)
since_v9 = pytest.mark.parametrize("version", [9, 10])


def committed_offset(broker, index=0, topic="orders", group_id=GROUP):
    return broker.services.groups.fetch(group_id, None, -1).get((topic, index))


@every_version
@pytest.mark.parametrize("group_id", [GROUP, ""])
def test_non_member_may_commit_to_an_empty_group(version, group_id):
    async def body(broker):
        topic = await broker.topic("orders", 2)
        partitions = [
            PartitionToCommit(0, 17, leader_epoch=3, metadata="note"),
            PartitionToCommit(1, 0, metadata=None),
        ]
        codes = await commit(broker, topic, *partitions, version=version, group_id=group_id)

        assert codes == [OK, OK]
        first, second = (committed_offset(broker, index, group_id=group_id) for index in (0, 1))
        assert (first.offset, first.metadata, first.topic_id) == (17, "note", topic.id)
        assert first.leader_epoch == (3 if version >= 6 else -1)
        assert (second.offset, second.metadata, second.leader_epoch) == (0, "", -1)
        assert first.expires_ms is second.expires_ms is None

    run_with_broker(body)


@every_version
def test_member_commits_with_its_generation(version):
    async def body(broker):
        topic = await broker.topic("orders")
        member = await form_generation(Member(broker))

        async def codes(**fields):
            fields = {
                "member_id": member.member_id,
                "generation_id_or_member_epoch": member.generation,
                **fields,
            }
            return await commit(broker, topic, PartitionToCommit(0, 5), version=version, **fields)

        if version == 0:  # No client can be a member.
            assert await codes() == [ErrorCode.UNKNOWN_MEMBER_ID]
            return
        assert await codes() == [OK]
        assert await codes(generation_id_or_member_epoch=7) == [ErrorCode.ILLEGAL_GENERATION]
        assert await codes(member_id="unknown-member") == [ErrorCode.UNKNOWN_MEMBER_ID]
        assert committed_offset(broker).offset == 5

    run_with_broker(body)


@every_version
def test_group_with_a_long_id_is_refused(version):
    """It could not be stored, and would be in every log line about the group."""

    async def body(broker):
        topic = await broker.topic("orders")
        for group_id, code in (("g" * 1024, OK), ("g" * 1025, ErrorCode.INVALID_GROUP_ID)):
            codes = await commit(
                broker, topic, PartitionToCommit(0, 17), version=version, group_id=group_id
            )
            assert codes == [code]

    run_with_broker(body)


@every_version
def test_commit_survives_a_broker_restart(version):
    async def scenario(_random):
        stores = Stores()
        async with running_broker(stores) as broker:
            topic = await broker.topic("orders")
            partition = PartitionToCommit(0, 17, metadata="note")
            assert await commit(broker, topic, partition, version=version) == [OK]
        async with running_broker(stores) as broker:
            assert (committed_offset(broker).offset, committed_offset(broker).metadata) == (
                17,
                "note",
            )

    virtual_time.run(scenario, seed=0)


@since_v9
def test_missing_partitions_take_precedence_over_group_errors(version):
    async def body(broker):
        topic = await broker.topic("orders")
        await form_generation(Member(broker))
        requested = [PartitionToCommit(0, 3), PartitionToCommit(1, 3)]
        codes = await commit(broker, topic, *requested, version=version)
        assert codes == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    run_with_broker(body)


@every_version
def test_partitions_fail_on_their_own(version):
    async def body(broker):
        topic = await broker.topic("orders", 2)
        long, short = (PartitionToCommit(0, 3, metadata=text) for text in ("äöü", "äö"))
        others = [PartitionToCommit(index, 3) for index in (1, 2, -1)]
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

        codes = await commit(broker, topic, long, *others, version=version)
        assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE, OK, unknown, unknown]
        assert committed_offset(broker, 0) is None
        assert committed_offset(broker, 1).offset == 3
        assert await commit(broker, topic, short, version=version) == [OK]

    run_with_broker(body, config=SMALL_METADATA)


@every_version
def test_unknown_topic_is_refused(version):
    async def body(broker):
        partitions = [PartitionToCommit(0, 3), PartitionToCommit(1, 3)]
        codes = await commit(broker, MISSING, *partitions, version=version)

        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == [ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else unknown] * 2
        assert not broker.services.groups.list()

    run_with_broker(body)


def test_v1_sets_the_commit_time():
    async def body(broker):
        topic = await broker.topic("orders", 2)
        dated, undated = PartitionToCommit(0, 5, commit_time_ms=1234), PartitionToCommit(1, 5)
        await asyncio.sleep(5)
        await commit(broker, topic, dated, undated, version=1)

        assert committed_offset(broker, 0).committed_ms == 1234
        assert 0 <= virtual_time.clock_ms() - committed_offset(broker, 1).committed_ms < 1000

    run_with_broker(body)


@every_version
def test_v2_to_v4_set_the_retention_time(version):
    async def body(broker):
        topic = await broker.topic("orders")
        await commit(
            broker, topic, PartitionToCommit(0, 5), version=version, retention_time_ms=60_000
        )

        result = committed_offset(broker)
        expected = result.committed_ms + 60_000 if 2 <= version <= 4 else None
        assert result.expires_ms == expected

    run_with_broker(body)


@every_version
def test_generation_of_a_missing_group_is_refused(version):
    async def body(broker):
        topic = await broker.topic("orders")
        fields = {"member_id": "unknown-member", "generation_id_or_member_epoch": 3}
        codes = await commit(broker, topic, PartitionToCommit(0, 5), version=version, **fields)

        if version == 0:
            assert codes == [OK]
        elif version < 9:
            assert codes == [ErrorCode.ILLEGAL_GENERATION]
        else:
            assert codes == [ErrorCode.GROUP_ID_NOT_FOUND]

    run_with_broker(body)


@since_v9
def test_consumer_member_commits_with_its_epoch(version):
    async def body(broker):
        topic = await broker.topic("orders")
        member = ConsumerMember(broker, "one")
        await member.join("orders")

        async def codes(epoch):
            return await commit(
                broker,
                topic,
                PartitionToCommit(0, 5),
                version=version,
                member_id="one",
                generation_id_or_member_epoch=epoch,
            )

        assert await codes(member.epoch) == [OK]
        assert await codes(member.epoch + 1) == [ErrorCode.STALE_MEMBER_EPOCH]

    run_with_broker(body)


@pytest.mark.parametrize("late", [0, 1])
def test_consumer_member_cannot_commit_before_v9(late):
    async def body(broker):
        topic = await broker.topic("orders")
        member = ConsumerMember(broker, "one")
        await member.join("orders")
        codes = await commit(
            broker,
            topic,
            PartitionToCommit(0, 5),
            version=8,
            member_id="one",
            generation_id_or_member_epoch=member.epoch + late,
        )

        assert codes == [ErrorCode.UNSUPPORTED_VERSION]

    run_with_broker(body)


def test_commit_before_a_pipelined_leave_succeeds():
    async def body(broker):
        topic = await broker.topic("orders")
        member = await form_generation(Member(broker))
        codes, _ = await asyncio.gather(
            commit(
                broker,
                topic,
                PartitionToCommit(0, 5),
                member_id=member.member_id,
                generation_id_or_member_epoch=member.generation,
            ),
            member.leave(),
        )

        assert codes == [OK]
        assert committed_offset(broker).offset == 5

    run_with_broker(body)


def test_empty_commit_is_accepted():
    async def body(broker):
        response = await broker.ask(OFFSET_COMMIT, OffsetCommitRequest(group_id=GROUP))

        assert response.topics == []
        assert not broker.services.groups.list()

    run_with_broker(body)
