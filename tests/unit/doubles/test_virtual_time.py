"""The virtual time loop: no waiting, one order, and detection of deadlocks."""

import asyncio
import time

import pytest

from doubles import virtual_time
from doubles.virtual_time import START_MS, StuckError, clock_ms, run


def test_time_passes_without_waiting():
    async def scenario(_random):
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time(), clock_ms()

    started = time.monotonic()
    assert run(scenario, seed=0) == (3600, START_MS + 3_600_000)
    assert time.monotonic() - started < 5


def test_time_stands_still_while_callbacks_are_ready():
    async def scenario(_random):
        for _ in range(100):
            await asyncio.sleep(0)
        return clock_ms()

    assert run(scenario, seed=0) == START_MS


def test_timers_fire_in_order():
    async def scenario(_random):
        rung = []

        async def ring(delay_s):
            await asyncio.sleep(delay_s)
            rung.append(delay_s)

        delays_s = [0.3, 100_000.0, 0.1, 0.2, 0.1 + 0.2, 7.0]
        async with asyncio.TaskGroup() as group:
            for delay_s in delays_s:
                group.create_task(ring(delay_s))
        return rung == sorted(delays_s)

    assert run(scenario, seed=0, time_max_s=200_000)


def test_timeouts_are_in_virtual_time():
    async def scenario(_random):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run(scenario, seed=0) == 60


async def race(random):
    """Tasks that race, depending on the seed."""
    finished = []

    async def runner(number):
        for _ in range(5):
            await asyncio.sleep(random.random())
        finished.append((number, clock_ms()))

    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(runner(number))
    return finished


def test_same_seed_gives_the_same_run():
    assert run(race, seed=1) == run(race, seed=1)
    assert len({tuple(number for number, _ in run(race, seed=seed)) for seed in range(20)}) > 10


def test_deadlock_is_detected_with_its_location():
    async def inner():
        await asyncio.Event().wait()

    async def scenario(_random):
        await inner()

    with pytest.raises(StuckError, match=r"deadlock: no timer is left; waiting: .*Event.wait"):
        run(scenario, seed=0)


def test_endless_heartbeat_is_detected():
    async def heartbeat():
        while True:  # noqa: ASYNC110 - nothing is waited for: it beats.
            await asyncio.sleep(3)

    async def scenario(_random):
        async with asyncio.TaskGroup() as group:
            group.create_task(heartbeat(), name="heartbeat")
            await asyncio.Event().wait()

    with pytest.raises(StuckError, match=r"not finished after 600 s; .*heartbeat at sleep"):
        run(scenario, seed=0, time_max_s=600)


def test_failure_of_the_scenario_is_raised():
    async def scenario(_random):
        await asyncio.sleep(1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(scenario, seed=0)


def test_unhandled_task_exception_fails_the_scenario():
    async def fail():
        raise KeyError("forgotten")

    async def scenario(_random):
        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        assert task.done()

    with pytest.raises(KeyError, match="forgotten") as raised:
        run(scenario, seed=0)
    assert raised.value.__notes__ == ["Unhandled exception: Task exception was never retrieved."]


def test_unhandled_callback_exception_fails_the_scenario():
    async def scenario(_random):
        asyncio.get_running_loop().call_later(1, [].pop)
        await asyncio.sleep(2)

    with pytest.raises(IndexError):
        run(scenario, seed=0)


def test_executor_work_runs_immediately():
    async def scenario(_random):
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return await asyncio.to_thread(sum, [1, 2, 3]), clock_ms()

    assert run(scenario, seed=0) == (6, START_MS)


def test_io_is_rejected():
    async def scenario(_random):
        await asyncio.open_connection("127.0.0.1", 1)

    with pytest.raises(NotImplementedError):
        run(scenario, seed=0)


def test_remaining_tasks_are_cancelled():
    cancelled = []

    async def background():
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.append(clock_ms())

    async def scenario(_random):
        scenario.task = asyncio.create_task(background())
        await asyncio.sleep(1)

    run(scenario, seed=0)
    assert cancelled == [START_MS + 1000]


def test_thousands_of_runs_take_seconds():
    """Half a millisecond each on an idle machine; the limit allows for a busy one."""
    started = time.monotonic()
    for seed in range(200):
        virtual_time.run(race, seed=seed)
    assert time.monotonic() - started < 5
