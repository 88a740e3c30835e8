"""What the reaper is told, and when it is not called at all."""

import asyncio

from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import PartitionState, SegmentInfo
from kafscale.metadata.schema.topic_codec import encode_partition_state
from kafscale.metadata.store.base import Put
from unit.broker.cluster.council import play

INTERVAL_SECONDS = 30.1


async def save(council, topic, partition, rolled_offset=0, *last_offsets):
    """Save a state of a partition that has segments up to these offsets."""
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
    await council.store.commit([], [Put(key, encode_partition_state(state))])


def test_it_is_told_how_far_partitions_are_in_segments():
    async def body(council):
        seat = await council.seat(1)
        topic = await council.topic("orders", 4)
        await save(council, topic, 0, 0, 9, 24)
        await save(council, topic, 1, 50, 24)
        await save(council, topic, 2, 7)
        seat.reaper.questions = [(topic.id, number) for number in range(4)]
        await asyncio.sleep(INTERVAL_SECONDS)
        [(ends, _)] = seat.reaper.rounds
        assert ends == {(topic.id, 0): 25, (topic.id, 1): 50, (topic.id, 2): 7, (topic.id, 3): 0}
        await save(council, topic, 2, 7, 70)
        await asyncio.sleep(INTERVAL_SECONDS)
        assert seat.reaper.rounds[1][0] == ends | {(topic.id, 2): 71}

    play(body)


def test_a_topic_is_gone_if_the_store_does_not_know_it_after_the_reaper_has_met_it():
    async def body(council):
        seat = await council.seat(1)
        topic = await council.topic("orders", 1)
        await save(council, topic, 0, 0, 9)
        await council.catalog.delete("orders")
        question = (topic.id, 0)
        seat.reaper.questions = [question]
        await asyncio.sleep(INTERVAL_SECONDS)
        assert seat.reaper.rounds[0][0] == {question: 0}, "it might be younger than what is known"
        await asyncio.sleep(INTERVAL_SECONDS)
        assert seat.reaper.rounds[1][0] == {question: None}

    play(body)


def test_a_topic_that_was_younger_than_what_was_known_is_never_taken_for_gone():
    async def body(council):
        seat = await council.seat(1)
        number = (1).to_bytes(16)
        seat.reaper.questions = [(number, 0)]
        await asyncio.sleep(INTERVAL_SECONDS)
        topic = await council.topic("orders", 1)
        assert topic.id == number
        await asyncio.sleep(INTERVAL_SECONDS)
        await save(council, topic, 0, 0, 9)
        await asyncio.sleep(INTERVAL_SECONDS)
        assert [ends[number, 0] for ends, _ in seat.reaper.rounds] == [0, 0, 10]

    play(body)


def test_only_the_registered_life_of_a_broker_is_alive():
    async def body(council):
        seat = await council.seat(1)
        await council.seat(2)
        await seat.join()
        seat.reaper.owners = [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)]
        await asyncio.sleep(INTERVAL_SECONDS)
        [(_, alive)] = seat.reaper.rounds
        assert alive == {(1, 1): False, (1, 2): True, (1, 3): True, (2, 1): True, (3, 1): False}

    play(body)


def test_only_the_controller_reaps():
    async def body(council):
        await council.seat(1)
        other = await council.seat(2)
        await asyncio.sleep(INTERVAL_SECONDS)
        assert other.reaper.rounds == []

    play(body)


def test_a_stale_controller_does_not_reap():
    """It has not heard yet that another follows; the store tells it."""

    async def body(council):
        stale = await council.seat(1)
        await council.seat(2)
        await asyncio.sleep(1)
        stale.store.late = {keys.BROKERS, keys.CONTROLLER, keys.ASSIGNMENTS}
        await council.store.revoke(stale.registration.lease)
        await asyncio.sleep(INTERVAL_SECONDS)
        assert stale.controller.is_controller, "as far as it knows"
        assert stale.reaper.rounds == []
        await asyncio.sleep(1)
        assert len(council.seats[2].reaper.rounds) == 1

    play(body)


def test_what_cannot_be_read_stops_the_reaping_but_nothing_else():
    async def body(council):
        seat = await council.seat(1)
        await council.store.commit([], [Put(keys.partition_state("orders", 0), b"\xff damaged")])
        await asyncio.sleep(2 * INTERVAL_SECONDS)
        assert seat.reaper.rounds == []
        await council.topic("payments", 3)
        await council.settled()

    play(body)
