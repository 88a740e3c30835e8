"""Processes of a simulation: a paused one stands still, others and the clock do not."""

import asyncio

from doubles import virtual_time
from doubles.processes import Processes


class Ticker:
    """Records the seconds at which it runs."""

    def __init__(self):
        self.ticks = []

    async def run(self, count):
        for _ in range(count):
            await asyncio.sleep(1)
            self.ticks.append(round(asyncio.get_running_loop().time()))


def simulate(scenario):
    async def run(_random):
        await scenario(Processes())

    virtual_time.run(run, seed=0)


def test_paused_process_stands_still_and_continues_later():
    async def scenario(processes):
        paused, other = Ticker(), Ticker()
        process = processes.start("paused")
        work = [
            process.create_task(paused.run(4)),
            processes.start("other").create_task(other.run(4)),
        ]
        await asyncio.sleep(1.5)
        process.pause()
        await asyncio.sleep(8.5)
        assert (paused.ticks, other.ticks) == ([1], [1, 2, 3, 4])
        process.resume()
        await asyncio.gather(*work)
        assert paused.ticks == [1, 10, 11, 12]

    simulate(scenario)


def test_tasks_and_timers_of_a_process_belong_to_it():
    async def scenario(processes):
        seen = []
        process = processes.start("paused")

        async def work():
            asyncio.get_running_loop().call_later(1, seen.append, "timer")
            inner = asyncio.create_task(asyncio.sleep(1, "task"))
            inner.add_done_callback(lambda done: seen.append(done.result()))

        process.create_task(work())
        process.call(asyncio.get_running_loop().call_later, 1, seen.append, "call")
        await asyncio.sleep(0.5)
        process.pause()
        await asyncio.sleep(10)
        assert seen == []
        process.resume()
        await asyncio.sleep(0.1)
        assert sorted(seen) == ["call", "task", "timer"]

    simulate(scenario)


def test_response_for_a_paused_process_waits_for_it():
    async def scenario(processes):
        process = processes.start("paused")
        response = asyncio.get_running_loop().create_future()
        seen = []

        async def request():
            seen.append(await response)

        process.create_task(request())
        await asyncio.sleep(1)
        process.pause()
        response.set_result("response")
        await asyncio.sleep(1)
        assert seen == []
        process.resume()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert seen == ["response"]

    simulate(scenario)


def test_killed_process_ends_even_if_it_is_paused():
    async def scenario(processes):
        ticker, other = Ticker(), Ticker()
        process = processes.start("killed")

        async def work():
            try:
                await asyncio.create_task(ticker.run(100))
            finally:
                await asyncio.sleep(1)

        work = process.create_task(work())
        bystander = processes.start("other").create_task(other.run(5))
        await asyncio.sleep(2.5)
        process.pause()
        killing = asyncio.create_task(process.kill())
        await asyncio.sleep(0)
        process.pause()  # Too late.
        await killing
        assert work.cancelled()
        assert ticker.ticks == [1, 2]
        await bystander
        assert other.ticks == [1, 2, 3, 4, 5]

    simulate(scenario)
