"""Plans that are carried out, while views are late and the store fails."""

import asyncio

import pytest

from kafscale.broker.cluster.controller.assigner import SHOWN_SECONDS_MAX
from kafscale.broker.cluster.controller.controller import RETRY_SECONDS
from kafscale.metadata.cluster.group_shards import SHARD_COUNT, SHARDS_TOPIC
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment
from kafscale.metadata.schema.model import Assignment
from kafscale.metadata.store.base import Put
from unit.broker.cluster.council import play


def test_nothing_is_planned_while_the_view_is_not_connected():
    """Only the watch of brokers breaks: the new topic is seen, and has to wait."""

    async def body(council):
        seat = await council.seat(1)
        await council.settled()
        seat.store.broken = True
        await council.store.commit([], [Put(keys.broker("7"), b"\xff damaged")])
        await asyncio.sleep(0.01)
        seat.store.broken = False
        await council.topic("orders", 3)
        await asyncio.sleep(0.4)
        assert "orders" in seat.catalog.topics
        assert not seat.view.connected
        assert council.owners("orders") == {}
        assert await council.settled() < 3 * RETRY_SECONDS

    play(body)


def test_nothing_is_planned_from_before_what_was_just_written():
    async def body(council):
        seat = await council.seat(1)
        await council.settled()
        seat.store.late = {keys.ASSIGNMENTS}
        seat.store.commits.clear()
        for name in ("orders", "payments", "returns"):
            await council.topic(name, 3)
            await asyncio.sleep(0.1)
        assert len(council.owners("orders")) == 3
        assert council.owners("payments") == {}
        seat.store.late.clear()
        assert await council.settled() < 0.1
        assert all(done.succeeded for *_, done in seat.store.commits)

    play(body)


def test_a_view_that_shows_nothing_is_not_waited_for_for_ever():
    async def body(council):
        seat = await council.seat(1)
        await council.settled()
        seat.store.late = {keys.ASSIGNMENTS}
        await council.topic("orders", 3)
        await asyncio.sleep(0.1)
        await council.topic("payments", 3)
        await asyncio.sleep(SHOWN_SECONDS_MAX + 2)
        assert len(council.owners("payments")) == 3
        assert {found.leader_epoch for found in council.view.assignments("orders").values()} == {0}

    play(body)


@pytest.mark.parametrize("fault", ["refusing", "losing_answers"])
def test_a_metadata_store_that_fails_is_asked_again(fault):
    async def body(council):
        await council.topic("orders", 200)
        seat = await council.seat(1)
        setattr(seat.store, fault, 6)
        await council.settled(30)
        assert getattr(seat.store, fault) == 0
        for found in council.view.assignments("orders").values():
            assert found.leader_epoch == 0, "nothing was done twice"

    play(body)


def test_what_cannot_be_written_does_not_hold_up_the_rest():
    """An assignment that nobody can read stands in the way of one partition only."""

    async def body(council):
        await council.store.commit([], [Put(keys.assignment(SHARDS_TOPIC, 7), b"\xff damaged")])
        await council.topic("orders", 100)
        await council.seat(1)
        await asyncio.sleep(5)
        assert len(council.owners("orders")) == 100
        assert council.owners(SHARDS_TOPIC).keys() == set(range(SHARD_COUNT)) - {7}

    play(body)


def test_assignments_of_topics_that_do_not_exist_are_removed():
    async def body(council):
        await council.seat(1)
        await council.settled()
        stray = Assignment(
            topic="stray",
            partition=0,
            broker_id=1,
            broker_epoch=1,
            leader_epoch=0,
            fully_rolled=True,
        )
        await council.store.commit([], [Put(keys.assignment("stray", 0), encode_assignment(stray))])
        await asyncio.sleep(0.1)
        assert council.view.assigned_topics() == [SHARDS_TOPIC]

    play(body)


def test_what_a_controller_has_not_heard_of_yet_it_does_not_remove():
    """The watch of topics is behind that of assignments."""

    async def body(council):
        first = await council.seat(1)
        await council.settled()
        first.store.late = {keys.TOPICS}
        await council.topic("orders", 1)
        owned = Assignment(
            topic="orders",
            partition=0,
            broker_id=1,
            broker_epoch=1,
            leader_epoch=0,
            fully_rolled=True,
        )
        await council.store.commit(
            [], [Put(keys.assignment("orders", 0), encode_assignment(owned))]
        )
        await asyncio.sleep(3)
        assert first.catalog.topics == {}
        assert council.owners("orders") == {0: 1}

    play(body)


def test_topics_may_come_and_go_at_any_moment():
    async def body(council):
        await council.seat(1)
        await council.seat(2)
        for round_ in range(20):
            topic = await council.topic(f"topic-{round_}", 50)
            await asyncio.sleep(0.003 * (round_ % 4))
            if round_ % 2:
                await council.catalog.delete(topic.name)
        await council.levelled()
        assert set(council.view.assigned_topics()) == {*council.catalog.topics, SHARDS_TOPIC}

    play(body, moves_max=100)


def test_many_partitions_are_taken_over_within_a_moment():
    async def body(council):
        for number in range(20):
            await council.topic(f"topic-{number}", 50)
        for number in (1, 2):
            await council.seat(number)
        council.seats[2].streams.seconds = council.seats[1].streams.seconds = 0.3
        await council.levelled()
        lost = next(seat for seat in council.seats.values() if seat is not council.controller)
        before = len(council.controller.store.commits)
        await lost.leave()
        assert await council.settled() < 0.5
        assert len(council.controller.store.commits) - before < 20

    play(body, moves_max=1000)
