"""What a broker does when it is told to, and what it refuses."""

import asyncio

import pytest

from kafscale.control_plane.assignment_feed import Holding
from kafscale.control_plane.errors import NotControllerError
from kafscale.control_plane.partition import Partition
from kafscale.errors import FencedError, InvalidRequestError, NotOwnerError, UnknownTopicError
from unit.broker.control_plane.stage import ME, owned, play
from unit.broker.harness import run_pending

ZERO, ONE, TWO, THREE = (Partition("orders", number) for number in range(4))
SHARD = Partition("__consumer_offsets", 3)


def test_a_flush_makes_everything_durable_once_and_then_segments():
    async def body(stage):
        assert await stage.broker.flush([ONE]) == [ONE]
        assert await stage.broker.flush(None) == [ZERO, ONE]
        assert stage.storage.done == [
            "flush",
            "roll orders/1 explicit",
            "flush",
            "roll orders/0 explicit",
            "roll orders/1 explicit",
        ]

    play(body)


def test_one_that_owns_nothing_has_nothing_to_flush():
    async def body(stage):
        stage.storage.by_place.clear()
        assert await stage.broker.flush(None) == []
        assert not stage.storage.done

    play(body)


def test_sealing_tells_up_to_where_segments_reach():
    async def body(stage):
        sealed = await stage.broker.seal_tail(ZERO)
        assert (sealed.rolled_end_offset, sealed.log_start_offset) == (9, 2)
        assert stage.storage.done == ["flush", "roll orders/0 explicit"]

    play(body)


def test_a_swap_is_of_what_a_job_has_staged_for_the_partition():
    async def body(stage):
        swapped = await stage.broker.swap_segments(ONE, "merge-7")
        assert stage.storage.done == ["swap orders/1 ns/_staging/merge-7/orders/1/"]
        assert (swapped.base_offset, swapped.end_offset) == (2, 9)
        assert (swapped.segments_before, swapped.segments_after) == (4, 1)
        assert (swapped.bytes_before, swapped.bytes_after) == (400, 100)

    play(body)


@pytest.mark.parametrize("job", ["", "../secrets", "a/b", ".hidden", "x" * 101, "a\n"])
def test_a_job_has_a_name_and_no_path(job):
    async def body(stage):
        with pytest.raises(InvalidRequestError):
            await stage.broker.swap_segments(ZERO, job)
        assert not stage.storage.done

    play(body)


@pytest.mark.parametrize(
    ("partition", "kind", "sentence"),
    [
        (Partition("payments", 0), UnknownTopicError, "there is no topic 'payments'"),
        (Partition("orders", 4), UnknownTopicError, "no partition orders/4, only 0 to 3"),
        (Partition("orders", -1), UnknownTopicError, "no partition orders/-1"),
        (Partition("__consumer_offsets", 50), UnknownTopicError, "only 0 to 49"),
        (TWO, NotOwnerError, "not the owner of orders/2: broker 2 is"),
        (THREE, NotOwnerError, "not the owner of orders/3: nobody is, at the moment"),
    ],
)
def test_what_is_not_here_is_refused_and_nothing_is_done(partition, kind, sentence):
    async def body(stage):
        for ask in (
            lambda: stage.broker.flush([ZERO, partition]),
            lambda: stage.broker.seal_tail(partition),
            lambda: stage.broker.swap_segments(partition, "job"),
            lambda: stage.broker.drain([ZERO, partition], "", 1),
        ):
            with pytest.raises(kind, match=sentence):
                await ask()
        assert not stage.storage.done
        assert not stage.drainer.calls

    play(body)


def test_a_shard_has_no_segments_but_can_be_moved():
    async def body(stage):
        with pytest.raises(InvalidRequestError, match="no segments"):
            await stage.broker.flush([SHARD])
        await stage.broker.drain([SHARD], "", 1)
        assert stage.drainer.calls == [([SHARD], 1)]

    play(body)


def test_a_partition_that_is_still_being_opened_may_be_asked_for_again():
    async def body(stage):
        await stage.put(owned("orders", 3))
        with pytest.raises(NotOwnerError, match="orders/3 is not open yet; try again"):
            await stage.broker.seal_tail(THREE)

    play(body)


def test_a_partition_that_goes_away_meanwhile_is_not_called_flushed():
    async def body(stage):
        stage.storage.gate = asyncio.Event()
        everything = asyncio.ensure_future(stage.broker.flush(None))
        by_name = asyncio.ensure_future(stage.broker.flush([ZERO]))
        await run_pending()
        stage.storage.get("orders", 0).closed = True
        stage.storage.gate.set()
        assert await everything == [ONE]
        with pytest.raises(NotOwnerError, match="closed meanwhile"):
            await by_name

    play(body)


def test_what_has_begun_goes_on_when_nobody_waits():
    async def body(stage):
        stage.storage.gate = asyncio.Event()
        asked = asyncio.ensure_future(stage.broker.seal_tail(ZERO))
        await run_pending()
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        stage.storage.gate.set()
        await run_pending()
        assert stage.storage.done == ["flush", "roll orders/0 explicit"]

    play(body)


def test_what_fails_when_nobody_waits_is_logged(capsys):
    async def body(stage):
        stage.storage.failure = FencedError("taken by another")
        asked = asyncio.ensure_future(stage.broker.seal_tail(ZERO))
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await run_pending()

    play(body)
    assert "taken by another" in capsys.readouterr().out


def test_closing_stops_what_is_still_being_done():
    async def body(stage):
        stage.storage.gate = asyncio.Event()
        asked = asyncio.ensure_future(stage.broker.seal_tail(ZERO))
        await run_pending()
        await stage.broker.close()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert stage.storage.done == ["flush"]

    play(body)


def test_a_drain_tells_what_is_gone_and_what_is_not():
    async def body(stage):
        result = await stage.broker.drain(None, "upgrade", 30)
        assert stage.drainer.calls == [(None, 30)]
        assert result.drained == [ZERO, ONE]
        assert result.pending == [SHARD]

    play(body)


def test_the_controller_plans_and_tells_what_moves():
    async def body(stage):
        [move] = await stage.broker.rebalance()
        assert stage.controller.count == 1
        assert (Partition.of(move.partition), move.from_broker, move.to_broker) == (ONE, "1", "2")

    play(body)


def test_another_broker_tells_who_is_the_controller():
    async def body(stage):
        stage.controller.is_controller = False
        with pytest.raises(NotControllerError, match="not the controller: broker 1 is"):
            await stage.broker.rebalance()
        assert stage.controller.count == 0

    play(body)


def test_what_is_held_is_what_living_brokers_own():
    async def body(stage):
        changed = asyncio.Event()
        stage.broker.subscribe(changed.set)
        before = stage.broker.holdings()
        assert before[ZERO] == Holding(1, 7)
        assert before[ONE] == Holding(1, 0, reassigning_to=2)
        assert before[SHARD] == Holding(1, 0)
        assert set(before) == {ZERO, ONE, TWO, SHARD, Partition("__consumer_offsets", 4)}
        await stage.put(owned("orders", 3, ME))
        assert changed.is_set()
        assert stage.broker.holdings()[THREE] == Holding(1, 0)

    play(body)
