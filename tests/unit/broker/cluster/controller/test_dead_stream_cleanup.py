"""What the stream cleaner is called with, and when it is not called at all."""

import asyncio

import structlog

from doubles import virtual_time
from kafscale.broker.cluster.controller.dead_stream_cleanup import LATE_WRITE_MS
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import PartitionState, SegmentInfo
from kafscale.metadata.schema.topic_codec import encode_partition_state
from kafscale.metadata.store.base import Put
from kafscale.storage.wal.dead_stream_cleaner import Session
from unit.broker.cluster.controller_cluster import simulate

INTERVAL_SECONDS = 30.1


async def delete(cluster, node, name):
    """Delete a topic, and its objects."""
    await cluster.topic_store.delete(name)
    await asyncio.sleep(0.1)
    tombstone = node.topic_store.deletions[name]
    await node.topic_store.mark_emptied(tombstone, virtual_time.clock_ms(), node.controller.term)
    await asyncio.sleep(0.1)


async def save(cluster, topic, partition, rolled_offset=0, *last_offsets):
    """Save the state of a partition that has segments up to these offsets."""
    state = PartitionState(
        topic=topic.name,
        topic_id=topic.id,
        partition=partition,
        leader_broker="1",
        leader_epoch=0,
        rolled_offset=rolled_offset,
        log_end_offset=999,
        high_watermark=999,
        segments=tuple(
            SegmentInfo(
                base_offset=0, size_bytes=1, created_ms=0, last_offset=offset, max_timestamp_ms=0
            )
            for offset in last_offsets
        ),
    )
    key = keys.partition_state(topic.name, partition)
    await cluster.store.commit([], [Put(key, encode_partition_state(state))])


def test_cleaner_gets_the_rolled_ends_of_topics():
    async def body(cluster):
        node = await cluster.node(1)
        topic = await cluster.topic("orders", 4)
        await cluster.topic("other", 1)
        await save(cluster, topic, 0, 0, 9, 24)
        await save(cluster, topic, 1, 50, 24)
        await save(cluster, topic, 2, 7)
        node.cleaner.topic_ids = [topic.id]
        await asyncio.sleep(INTERVAL_SECONDS)
        [(ends, _)] = node.cleaner.rounds
        assert ends == {topic.id: {0: 25, 1: 50, 2: 7}}
        await save(cluster, topic, 2, 7, 70)
        await asyncio.sleep(INTERVAL_SECONDS)
        assert node.cleaner.rounds[1][0] == {topic.id: {0: 25, 1: 50, 2: 71}}

    simulate(body)


def test_partition_states_are_read_only_for_topics_that_the_cleaner_has_found():
    async def body(cluster):
        node = await cluster.node(1)
        topic = await cluster.topic("orders", 1)
        await save(cluster, topic, 0, 7)
        prefixes = []
        read = node.store.range
        node.store.range = lambda prefix: (prefixes.append(prefix), read(prefix))[1]
        await asyncio.sleep(INTERVAL_SECONDS)
        assert not any(prefix.startswith(keys.TOPICS) for prefix in prefixes)
        node.cleaner.topic_ids = [topic.id]
        await asyncio.sleep(INTERVAL_SECONDS)
        assert [prefix for prefix in prefixes if prefix.startswith(keys.TOPICS)] == [
            keys.partition_states("orders")
        ]

    simulate(body)


def test_topic_counts_as_deleted_only_by_a_record_of_its_deletion():
    async def body(cluster):
        node = await cluster.node(1)
        first = await cluster.topic("orders", 1)
        await cluster.topic_store.delete("orders")
        unknown = b"?" * 16
        node.cleaner.topic_ids = [first.id, unknown]
        with structlog.testing.capture_logs() as logs:
            await asyncio.sleep(3 * INTERVAL_SECONDS)
        assert [ends for ends, _ in node.cleaner.rounds] == [{first.id: None}] * 3
        [warning] = [line for line in logs if line["event"] == "unknown WAL objects kept"]
        assert warning["topic_ids"] == [unknown.hex()]

    simulate(body)


def test_deletion_is_on_record_until_no_wal_object_can_hold_the_topic():
    """Also when the name is used and deleted again, which replaces the tombstone."""

    async def body(cluster):
        node = await cluster.node(1)
        await cluster.wait_until_assigned()
        first = await cluster.topic("orders", 1)
        await delete(cluster, node, "orders")
        await cluster.topic("orders", 1)
        await delete(cluster, node, "orders")
        node.cleaner.topic_ids = [first.id]
        node.cleaner.oldest_records_ms = virtual_time.clock_ms()
        await asyncio.sleep(2 * INTERVAL_SECONDS)
        assert node.cleaner.rounds[-1][0] == {first.id: None}
        assert node.topic_store.retired["orders"].id != first.id
        await node.topic_store.remove_tombstone(
            node.topic_store.retired["orders"], node.controller.term
        )
        node.cleaner.oldest_records_ms = virtual_time.clock_ms() + LATE_WRITE_MS
        await asyncio.sleep(2 * INTERVAL_SECONDS)
        assert node.cleaner.rounds[-1][0] == {}
        assert (await cluster.store.range(keys.DELETED_TOPICS)).entries == ()

    simulate(body)


def test_session_is_known_by_its_epoch():
    async def body(cluster):
        node = await cluster.node(1)
        await cluster.node(2)
        await node.join()
        node.cleaner.sessions = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 0), (3, 1)]
        await asyncio.sleep(INTERVAL_SECONDS)
        [(_, found)] = node.cleaner.rounds
        assert found == {
            (1, 1): Session.ENDED,
            (1, 2): Session.LIVE,
            (1, 3): Session.LIVE,
            (2, 1): Session.LIVE,
            (2, 0): Session.ENDED,
            (3, 1): Session.UNKNOWN,
        }

    simulate(body)


def test_only_the_controller_cleans_up():
    async def body(cluster):
        await cluster.node(1)
        other = await cluster.node(2)
        await asyncio.sleep(INTERVAL_SECONDS)
        assert other.cleaner.rounds == []

    simulate(body)


def test_stale_controller_does_not_clean_up():
    """Its cache does not show the next controller yet, but the store does."""

    async def body(cluster):
        stale = await cluster.node(1)
        await cluster.node(2)
        await asyncio.sleep(1)
        stale.store.late = {keys.BROKERS, keys.CONTROLLER, keys.ASSIGNMENTS}
        await cluster.store.revoke(stale.broker.lease)
        await asyncio.sleep(INTERVAL_SECONDS)
        assert stale.controller.is_controller, "as far as it knows"
        assert stale.cleaner.rounds == []
        await asyncio.sleep(1)
        assert len(cluster.nodes[2].cleaner.rounds) == 1

    simulate(body)


def test_damaged_record_stops_the_cleanup_but_no_other_duty():
    async def body(cluster):
        node = await cluster.node(1)
        topic = await cluster.topic("orders", 1)
        await cluster.store.commit([], [Put(keys.partition_state("orders", 0), b"\xff damaged")])
        node.cleaner.topic_ids = [topic.id]
        await asyncio.sleep(2 * INTERVAL_SECONDS)
        assert node.cleaner.rounds == []
        await cluster.topic("payments", 3)
        await cluster.wait_until_assigned()

    simulate(body)
