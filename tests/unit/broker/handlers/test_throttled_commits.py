"""OffsetCommit above the limits: it waits, in the order of its connection, or is refused."""

import asyncio
import dataclasses

import msgspec
import pytest

from kafscale.broker.group_coordinator.commit_limits import MUTE_MS, WAIT_SECONDS_MAX
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    PartitionToCommit,
    TopicToCommit,
)
from kafscale.security.principal import Principal
from kafscale.text.units import KIB
from unit.broker.handlers.group_members import GROUP
from unit.broker.handlers.offset_commits import commit
from unit.broker.in_memory_broker import CONFIG, run_with_broker

OK = ErrorCode.NONE
METADATA = "m" * 4000
LIMITED = dataclasses.replace(
    CONFIG,
    offsets=dataclasses.replace(
        CONFIG.offsets, user_commit_bytes_per_second=10 * KIB, group_commit_bytes_per_second=5 * KIB
    ),
)
BURST = 6
"""How many offsets with this metadata a group may commit at once."""

every_version = pytest.mark.parametrize("version", OFFSET_COMMIT.versions)


def large(count, offset=1):
    return [PartitionToCommit(index, offset, metadata=METADATA) for index in range(count)]


def committed(broker, group_id=GROUP):
    fetched = broker.services.groups.fetch(group_id, None, -1)
    return {index: each.offset for (_, index), each in fetched.items()}


async def timed_commit(broker, *arguments, **fields):
    loop = asyncio.get_running_loop()
    started = loop.time()
    codes = await commit(broker, *arguments, **fields)
    return codes, loop.time() - started


@every_version
def test_commit_above_the_limit_waits_and_is_stored(version):
    async def body(broker):
        topic = await broker.topic("orders", BURST)
        codes, seconds = await timed_commit(broker, topic, *large(BURST), version=version)
        assert (set(codes), seconds < 1) == ({OK}, True)
        codes, seconds = await timed_commit(broker, topic, *large(3, 2), version=version)
        assert codes == [OK] * 3
        assert 1.5 < seconds < WAIT_SECONDS_MAX
        assert committed(broker) == {0: 2, 1: 2, 2: 2, 3: 1, 4: 1, 5: 1}
        assert broker.services.metrics.access.throttled == {"offset_commits": 1}

    run_with_broker(body, config=LIMITED)


@every_version
def test_commit_that_would_wait_for_too_long_is_retriable_and_mutes(version):
    async def body(broker):
        topic = await broker.topic("orders", 2 * BURST)
        await commit(broker, topic, *large(2 * BURST), version=version)
        client = msgspec.structs.replace(broker.client)
        requested = TopicToCommit(topic.name, topic_id=topic.id, partitions=large(1, 2))
        request = OffsetCommitRequest(group_id=GROUP, topics=[requested])
        response = await broker.ask(OFFSET_COMMIT, request, version, client=client)
        [refused] = response.topics[0].partitions
        assert refused.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert client.throttled_ms == MUTE_MS
        assert response.throttle_time_ms == (MUTE_MS if version >= 3 else 0)
        assert committed(broker)[0] == 1

    run_with_broker(body, config=LIMITED)


def test_later_requests_of_the_connection_wait_for_the_commit():
    """A consumer commits and leaves its group without waiting for the response."""

    async def body(broker):
        topic = await broker.topic("orders", BURST)
        await commit(broker, topic, *large(BURST))
        assert broker.client.hold is None
        waiting = asyncio.ensure_future(commit(broker, topic, *large(2, 2)))
        await asyncio.sleep(0)
        hold = broker.client.hold
        assert not hold.done()
        await waiting
        assert hold.done()

    run_with_broker(body, config=LIMITED)


def test_group_and_topic_are_checked_again_after_the_wait():
    async def body(broker):
        topic = await broker.topic("orders", BURST)
        await commit(broker, topic, *large(BURST))
        waiting = asyncio.ensure_future(commit(broker, topic, *large(2, 2)))
        await asyncio.sleep(0.1)
        await broker.services.topic_store.delete("orders")
        assert await waiting == [ErrorCode.UNKNOWN_TOPIC_ID] * 2
        assert committed(broker) == {}

    run_with_broker(body, config=LIMITED)


def test_users_do_not_delay_each_other():
    async def body(broker):
        topic = await broker.topic("orders", 4 * BURST)
        await commit(broker, topic, *large(4 * BURST))
        bob = msgspec.structs.replace(broker.client, principal=Principal("User:bob"))
        broker.client = bob
        codes, seconds = await timed_commit(broker, topic, *large(1), group_id="bobs")
        assert (codes, seconds < 1) == ([OK], True)

    run_with_broker(body, config=LIMITED)


def test_long_group_id_is_refused_before_it_is_charged_logged_or_remembered():
    async def body(broker):
        topic = await broker.topic("orders", BURST)
        await commit(broker, topic, *large(BURST), group_id="first")
        await commit(broker, topic, *large(BURST), group_id="second")
        codes, seconds = await timed_commit(broker, topic, *large(1), group_id="g" * 100_000)
        assert (codes, seconds) == ([ErrorCode.INVALID_GROUP_ID], 0)
        assert broker.services.metrics.access.throttled == {}

    run_with_broker(body, config=LIMITED)


def test_metadata_of_a_group_has_a_bound_in_sum():
    async def body(broker):
        topic = await broker.topic("orders", 10)
        assert await commit(broker, topic, *large(3)) == [OK] * 3
        too_large = [PartitionToCommit(9, 1, metadata="m")]
        assert (
            await commit(broker, topic, *large(4)[3:], *too_large)
            == [ErrorCode.OFFSET_METADATA_TOO_LARGE] * 2
        )
        # What is not more than before is accepted: other offsets, and shorter metadata.
        assert await commit(broker, topic, *large(3, 2)) == [OK] * 3
        assert await commit(broker, topic, PartitionToCommit(9, 7)) == [OK]
        assert await commit(broker, topic, PartitionToCommit(0, 3, metadata="short")) == [OK]
        assert await commit(broker, topic, *large(4)[3:]) == [OK]
        assert await commit(broker, topic, *large(1), group_id="others") == [OK]
        refused = await commit(broker, topic, *large(4), group_id="too large")
        assert set(refused) == {ErrorCode.OFFSET_METADATA_TOO_LARGE}
        assert broker.services.groups.registry.get("too large") is None

    run_with_broker(
        body,
        config=dataclasses.replace(
            CONFIG, offsets=dataclasses.replace(CONFIG.offsets, group_metadata_bytes_max=12_010)
        ),
    )
