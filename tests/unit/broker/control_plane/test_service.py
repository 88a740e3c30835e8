"""What a broker does on control plane requests, and what it rejects."""

import asyncio

import pytest

from kafscale.control_plane.assignment_feed import PartitionOwner
from kafscale.control_plane.errors import NotControllerError
from kafscale.control_plane.messages import Partition
from kafscale.errors import FencedError, InvalidRequestError, NotOwnerError, UnknownTopicError
from unit.broker.control_plane.controlled_broker import ME, owned, simulate
from unit.broker.harness import run_pending

ZERO, ONE, TWO, THREE = (Partition("orders", number) for number in range(4))
SHARD = Partition("__consumer_offsets", 3)


def test_flush_flushes_the_wal_once_and_rolls():
    async def body(setup):
        assert await setup.broker.flush([ONE]) == [ONE]
        assert await setup.broker.flush(None) == [ZERO, ONE]
        assert setup.storage.done == [
            "flush",
            "roll orders/1 explicit",
            "flush",
            "roll orders/0 explicit",
            "roll orders/1 explicit",
        ]

    simulate(body)


def test_flush_without_partitions():
    async def body(setup):
        setup.storage.logs_by_partition.clear()
        assert await setup.broker.flush(None) == []
        assert not setup.storage.done

    simulate(body)


def test_seal_tail_returns_the_rolled_offset():
    async def body(setup):
        sealed = await setup.broker.seal_tail(ZERO)
        assert (sealed.rolled_end_offset, sealed.log_start_offset) == (9, 2)
        assert setup.storage.done == ["flush", "roll orders/0 explicit"]

    simulate(body)


def test_swap_installs_the_segments_staged_by_the_job():
    async def body(setup):
        swapped = await setup.broker.swap_segments(ONE, "merge-7", [1, 2])
        assert setup.storage.done == ["swap orders/1 ns/_staging/merge-7/orders/1/ [1, 2]"]
        assert (swapped.base_offset, swapped.end_offset) == (2, 9)
        assert (swapped.segments_before, swapped.segments_after) == (4, 1)
        assert (swapped.bytes_before, swapped.bytes_after) == (400, 100)

    simulate(body)


@pytest.mark.parametrize("job", ["", "../secrets", "a/b", ".hidden", "x" * 101, "a\n"])
def test_invalid_job_names_are_rejected(job):
    async def body(setup):
        with pytest.raises(InvalidRequestError):
            await setup.broker.swap_segments(ZERO, job, [])
        assert not setup.storage.done

    simulate(body)


@pytest.mark.parametrize(
    ("partition", "error_type", "sentence"),
    [
        (Partition("payments", 0), UnknownTopicError, "there is no topic 'payments'"),
        (Partition("orders", 4), UnknownTopicError, "no partition orders/4, only 0 to 3"),
        (Partition("orders", -1), UnknownTopicError, "no partition orders/-1"),
        (Partition("__consumer_offsets", 50), UnknownTopicError, "only 0 to 49"),
        (TWO, NotOwnerError, "not the owner of orders/2: broker 2 is"),
        (THREE, NotOwnerError, "not the owner of orders/3: no broker is"),
    ],
)
def test_partitions_not_owned_here_are_rejected(partition, error_type, sentence):
    async def body(setup):
        for ask in (
            lambda: setup.broker.flush([ZERO, partition]),
            lambda: setup.broker.seal_tail(partition),
            lambda: setup.broker.swap_segments(partition, "job", []),
            lambda: setup.broker.drain([ZERO, partition], "", 1),
        ):
            with pytest.raises(error_type, match=sentence):
                await ask()
        assert not setup.storage.done
        assert not setup.drainer.calls

    simulate(body)


def test_shard_has_no_segments_but_can_be_drained():
    async def body(setup):
        with pytest.raises(InvalidRequestError, match="no segments"):
            await setup.broker.flush([SHARD])
        await setup.broker.drain([SHARD], "", 1)
        assert setup.drainer.calls == [([SHARD], 1)]

    simulate(body)


def test_partition_being_opened_is_retriable():
    async def body(setup):
        await setup.put(owned("orders", 3))
        with pytest.raises(NotOwnerError, match="orders/3 is not open yet; try again"):
            await setup.broker.seal_tail(THREE)

    simulate(body)


def test_partition_closed_during_flush_is_not_reported():
    async def body(setup):
        setup.storage.gate = asyncio.Event()
        everything = asyncio.ensure_future(setup.broker.flush(None))
        by_name = asyncio.ensure_future(setup.broker.flush([ZERO]))
        await run_pending()
        setup.storage.get("orders", 0).closed = True
        setup.storage.gate.set()
        assert await everything == [ONE]
        with pytest.raises(NotOwnerError, match="closed concurrently"):
            await by_name

    simulate(body)


def test_work_continues_after_cancellation():
    async def body(setup):
        setup.storage.gate = asyncio.Event()
        request = asyncio.ensure_future(setup.broker.seal_tail(ZERO))
        await run_pending()
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        setup.storage.gate.set()
        await run_pending()
        assert setup.storage.done == ["flush", "roll orders/0 explicit"]

    simulate(body)


def test_failure_after_cancellation_is_logged(capsys):
    async def body(setup):
        setup.storage.failure = FencedError("taken by another")
        request = asyncio.ensure_future(setup.broker.seal_tail(ZERO))
        await asyncio.sleep(0)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        await run_pending()

    simulate(body)
    assert "taken by another" in capsys.readouterr().out


def test_close_cancels_running_work():
    async def body(setup):
        setup.storage.gate = asyncio.Event()
        request = asyncio.ensure_future(setup.broker.seal_tail(ZERO))
        await run_pending()
        await setup.broker.close()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert setup.storage.done == ["flush"]

    simulate(body)


def test_drain_returns_released_and_pending_partitions():
    async def body(setup):
        result = await setup.broker.drain(None, "upgrade", 30)
        assert setup.drainer.calls == [(None, 30)]
        assert result.drained == [ZERO, ONE]
        assert result.pending == [SHARD]

    simulate(body)


def test_rebalance_returns_the_moves():
    async def body(setup):
        [move] = await setup.broker.rebalance()
        assert setup.controller.count == 1
        assert (Partition.of(move.partition), move.from_broker, move.to_broker) == (ONE, "1", "2")

    simulate(body)


def test_rebalance_at_another_broker_names_the_controller():
    async def body(setup):
        setup.controller.is_controller = False
        with pytest.raises(NotControllerError, match="not the controller: broker 1 is"):
            await setup.broker.rebalance()
        assert setup.controller.count == 0

    simulate(body)


def test_partition_owners_of_live_brokers():
    async def body(setup):
        changed = asyncio.Event()
        setup.broker.subscribe(changed.set)
        before = setup.broker.partition_owners()
        assert before[ZERO] == PartitionOwner(1, 7)
        assert before[ONE] == PartitionOwner(1, 0, reassigning_to=2)
        assert before[SHARD] == PartitionOwner(1, 0)
        assert set(before) == {ZERO, ONE, TWO, SHARD, Partition("__consumer_offsets", 4)}
        await setup.put(owned("orders", 3, ME))
        assert changed.is_set()
        assert setup.broker.partition_owners()[THREE] == PartitionOwner(1, 0)

    simulate(body)
