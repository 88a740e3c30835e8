"""Nothing is waited for that nobody will take."""

import asyncio
from random import Random
from types import SimpleNamespace

from kafscale.broker.cluster.drain import Draining
from kafscale.testing.virtual_time import run

HERE = ("orders", 0)


class Stage:
    """Two brokers, of which the other one may leave, or take what there is."""

    def __init__(self) -> None:
        self.other = SimpleNamespace(id=1, is_draining=False)
        self.view = SimpleNamespace(brokers={1: self.other})
        self.registration = SimpleNamespace(id=0)
        self.served = {HERE}
        self.announced = 0

    async def announce_drain(self) -> None:
        self.announced += 1

    async def gone(self, places, seconds) -> bool:
        async with asyncio.timeout(seconds):
            while True:
                if self.served.isdisjoint(places):
                    break
                await asyncio.sleep(0.1)
        return True

    def draining(self) -> Draining:
        return Draining(self.view, self, self)


def drained(stage: Stage, happens) -> tuple[float, list, list]:
    """How long it took, what is gone, and what is not."""

    async def scenario(_: Random):
        loop = asyncio.get_running_loop()
        loop.call_later(2, happens, stage)
        gone, pending = await stage.draining().drain(None, 50)
        return loop.time(), list(gone), list(pending)

    return run(scenario, seed=0)


def test_it_is_done_when_others_have_taken_it() -> None:
    seconds, gone, pending = drained(Stage(), lambda stage: stage.served.clear())
    assert (gone, pending) == ([HERE], [])
    assert 1.9 < seconds < 3


def test_all_leave_at_once_and_nobody_waits_for_the_others() -> None:
    stage = Stage()
    seconds, gone, pending = drained(stage, lambda it: setattr(it.other, "is_draining", True))
    assert (gone, pending) == ([], [HERE])
    assert 1.9 < seconds < 3
    assert stage.announced == 1


def test_whoever_is_alone_says_nothing_and_keeps_what_it_has() -> None:
    stage = Stage()
    stage.view.brokers.clear()
    seconds, gone, pending = drained(stage, lambda _: None)
    assert (seconds, gone, pending) == (0, [], [HERE])
    assert stage.announced == 0
