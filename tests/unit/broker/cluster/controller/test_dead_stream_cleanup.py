"""What the stream cleaner is called with, and when it is not called at all."""

import asyncio

from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import PartitionState, SegmentInfo
from kafscale.metadata.schema.topic_codec import encode_partition_state
from kafscale.metadata.store.base import Put
from unit.broker.cluster.controller_cluster import simulate

INTERVAL_SECONDS = 30.1


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


def test_cleaner_gets_the_rolled_end_of_each_partition():
    async def body(cluster):
        node = await cluster.node(1)
        topic = await cluster.topic("orders", 4)
        await save(cluster, topic, 0, 0, 9, 24)
        await save(cluster, topic, 1, 50, 24)
        await save(cluster, topic, 2, 7)
        node.cleaner.questions = [(topic.id, number) for number in range(4)]
        await asyncio.sleep(INTERVAL_SECONDS)
        [(ends, _)] = node.cleaner.rounds
        assert ends == {(topic.id, 0): 25, (topic.id, 1): 50, (topic.id, 2): 7, (topic.id, 3): 0}
        await save(cluster, topic, 2, 7, 70)
        await asyncio.sleep(INTERVAL_SECONDS)
        assert node.cleaner.rounds[1][0] == ends | {(topic.id, 2): 71}

    simulate(body)


def test_topic_counts_as_deleted_only_on_the_second_run():
    async def body(cluster):
        node = await cluster.node(1)
        topic = await cluster.topic("orders", 1)
        await save(cluster, topic, 0, 0, 9)
        await cluster.topic_store.delete("orders")
        question = (topic.id, 0)
        node.cleaner.questions = [question]
        await asyncio.sleep(INTERVAL_SECONDS)
        assert node.cleaner.rounds[0][0] == {question: 0}, "it may be newer than the last read"
        await asyncio.sleep(INTERVAL_SECONDS)
        assert node.cleaner.rounds[1][0] == {question: None}

    simulate(body)


def test_topic_created_between_two_runs_is_not_taken_for_deleted():
    async def body(cluster):
        node = await cluster.node(1)
        number = (1).to_bytes(16)
        node.cleaner.questions = [(number, 0)]
        await asyncio.sleep(INTERVAL_SECONDS)
        topic = await cluster.topic("orders", 1)
        assert topic.id == number
        await asyncio.sleep(INTERVAL_SECONDS)
        await save(cluster, topic, 0, 0, 9)
        await asyncio.sleep(INTERVAL_SECONDS)
        assert [ends[number, 0] for ends, _ in node.cleaner.rounds] == [0, 0, 10]

    simulate(body)


def test_only_the_registered_session_of_a_broker_is_live():
    async def body(cluster):
        node = await cluster.node(1)
        await cluster.node(2)
        await node.join()
        node.cleaner.owners = [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)]
        await asyncio.sleep(INTERVAL_SECONDS)
        [(_, alive)] = node.cleaner.rounds
        assert alive == {(1, 1): False, (1, 2): True, (1, 3): True, (2, 1): True, (3, 1): False}

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
        await cluster.store.commit([], [Put(keys.partition_state("orders", 0), b"\xff damaged")])
        await asyncio.sleep(2 * INTERVAL_SECONDS)
        assert node.cleaner.rounds == []
        await cluster.topic("payments", 3)
        await cluster.wait_until_assigned()

    simulate(body)
