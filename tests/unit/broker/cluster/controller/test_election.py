"""Elections: one controller at a time, whatever the others believe."""

import asyncio

from kafscale.metadata.schema import keys
from unit.broker.cluster.council import play


def test_of_many_who_stand_at_once_one_is_elected():
    async def body(council):
        await asyncio.gather(*(council.seat(number) for number in range(7)))
        await asyncio.sleep(0.1)
        assert len(council.controllers) == 1

    play(body)


def test_a_broker_that_drains_is_emptied_and_does_not_become_controller():
    async def body(council):
        await council.topic("orders", 20)
        for number in (1, 2, 3):
            await council.seat(number)
        await council.levelled()
        first = council.controller
        second, third = [seat for seat in council.seats.values() if seat is not first]
        await second.drain()
        for _ in range(10):
            await asyncio.sleep(0.05)
            await council.hand_over()
        assert council.is_settled()
        assert second.broker_id not in council.owners("orders").values()
        await first.leave()
        await council.settled()
        assert council.controller is third
        await third.leave()
        await council.settled()
        assert council.controller is second, "it is the last one"

    play(body, moves_max=100)


def test_a_stale_controller_writes_nothing():
    """It was paused, and goes on with a view from before its lease ended: all of it is refused."""

    async def body(council):
        await council.topic("orders", 10)
        stale = await council.seat(1)
        await council.settled()
        stale.store.late = {keys.BROKERS, keys.CONTROLLER, keys.ASSIGNMENTS}
        other = await council.seat(2)
        await council.store.revoke(stale.registration.lease)
        await asyncio.sleep(0.1)
        assert council.view.controller_id == 2
        assert set(council.owners("orders").values()) == {2}
        assert stale.controller.is_controller, "as far as it knows"
        stale.store.commits.clear()
        await council.topic("payments", 3)
        await asyncio.sleep(2)
        assert stale.store.commits
        assert not any(done.succeeded for *_, done in stale.store.commits)
        assert set(council.owners("payments").values()) == {2}
        stale.store.late.clear()
        await asyncio.sleep(0.1)
        assert council.controllers == [2]
        assert other.streams.fences == [(1, 1)]
        assert stale.streams.fences == []

    play(body)


def test_a_life_that_is_over_ends_all_duties_and_the_next_life_stands_again():
    async def body(council):
        seat = await council.seat(1)
        await council.settled()
        seat.controller.end()
        assert not seat.controller.is_controller
        await council.topic("orders", 3)
        await asyncio.sleep(5)
        assert council.owners("orders") == {}
        seat.controller.begin(seat.registration)
        assert await council.settled() < 0.1

    play(body)
