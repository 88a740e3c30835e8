"""Fences: for those who are lost, and for nobody else."""

import asyncio

from msgspec.structs import replace

from kafscale.metadata.cluster.group_shards import SHARDS_TOPIC
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment
from kafscale.metadata.store.base import Put
from unit.broker.cluster.council import play


def test_an_object_store_that_fails_for_one_stream_keeps_nobody_else_waiting():
    async def body(council):
        await council.topic("orders", 12)
        for number in (1, 2, 3):
            await council.seat(number)
            await asyncio.sleep(0.01)
        await council.levelled()
        assert council.controllers == [1]
        streams = council.controller.streams
        streams.failing = {2}
        await council.seats[2].leave()
        await council.seats[3].leave()
        await asyncio.sleep(0.1)
        assert streams.fences == [(3, 1)]
        assert sorted(council.owners("orders").values()) == [1] * 8 + [2] * 4
        assert set(council.owners(SHARDS_TOPIC).values()) == {1}
        await council.topic("payments", 2)
        await asyncio.sleep(20)
        assert set(council.owners("payments").values()) == {1}
        streams.failing.clear()
        assert await council.settled() < 3
        assert set(council.owners("orders").values()) == {1}

    play(body, moves_max=100)


def test_an_owner_that_the_view_does_not_show_yet_is_neither_fenced_nor_robbed():
    """The watch of brokers is behind that of assignments, which name somebody who has just come."""

    async def body(council):
        await council.topic("orders", 4)
        first = await council.seat(1)
        await council.settled()
        first.store.late = {keys.BROKERS}
        await council.seat(2)
        for topic in ("orders", SHARDS_TOPIC):
            found = council.view.assignments(topic)[0]
            await council.store.commit(
                [],
                [
                    Put(
                        keys.assignment(topic, 0),
                        encode_assignment(replace(found, broker_id=2, broker_epoch=1)),
                    )
                ],
            )
        await asyncio.sleep(3)
        assert 2 not in first.view.brokers
        assert first.streams.fences == []
        assert council.owners("orders")[0] == council.owners(SHARDS_TOPIC)[0] == 2

    play(body)
