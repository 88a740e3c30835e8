"""Drain waits only while another broker can take over."""

import asyncio
from random import Random
from types import SimpleNamespace

from doubles.virtual_time import run
from kafscale.broker.cluster.drain import Drainer

HERE = ("orders", 0)


class Stage:
    """Two brokers, of which the other may start to drain, or take over everything."""

    def __init__(self) -> None:
        self.other = SimpleNamespace(id=1, is_draining=False)
        self.cache = SimpleNamespace(brokers={1: self.other})
        self.broker = SimpleNamespace(id=0)
        self.served = {HERE}
        self.announced = 0

    async def announce_drain(self) -> None:
        self.announced += 1

    async def wait_until_released(self, topic_partitions, seconds) -> bool:
        async with asyncio.timeout(seconds):
            while True:
                if self.served.isdisjoint(topic_partitions):
                    break
                await asyncio.sleep(0.1)
        return True

    def drainer(self) -> Drainer:
        return Drainer(self.cache, self, self)


def drained(stage: Stage, happens) -> tuple[float, list, list]:
    """How long the drain took, what was released, and what was not."""

    async def scenario(_: Random):
        loop = asyncio.get_running_loop()
        loop.call_later(2, happens, stage)
        gone, pending = await stage.drainer().drain(None, 50)
        return loop.time(), list(gone), list(pending)

    return run(scenario, seed=0)


def test_drain_returns_once_other_brokers_own_everything() -> None:
    seconds, gone, pending = drained(Stage(), lambda stage: stage.served.clear())
    assert (gone, pending) == ([HERE], [])
    assert 1.9 < seconds < 3


def test_drain_stops_waiting_when_all_brokers_drain() -> None:
    stage = Stage()
    seconds, gone, pending = drained(stage, lambda it: setattr(it.other, "is_draining", True))
    assert (gone, pending) == ([], [HERE])
    assert 1.9 < seconds < 3
    assert stage.announced == 1


def test_drain_of_a_single_broker_keeps_everything() -> None:
    stage = Stage()
    stage.cache.brokers.clear()
    seconds, gone, pending = drained(stage, lambda _: None)
    assert (seconds, gone, pending) == (0, [], [HERE])
    assert stage.announced == 0
