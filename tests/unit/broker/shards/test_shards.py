"""Shards are served once their contents are restored, which may take many turns."""

import asyncio
from random import Random

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.shards.pausable_clock import PausableClock
from kafscale.broker.shards.shards import Shards
from unit.broker.group_coordinator.shard_guards import assign_shards

US = 1


class Content:
    """Restores shards at once or, with a gate, later."""

    def __init__(self, gate=None):
        self.shards = set()
        self._gate = gate

    async def load(self, _shards):
        def restore(current):
            self.shards.update(current)
            return None if self._gate is None else self._gate.wait()

        return restore

    def unload(self, sessions, _error):
        self.shards -= {session.shard for session in sessions}


def test_shard_that_is_lost_while_others_are_restored_is_left_out():
    async def scenario(_random):
        store = MemoryStore(virtual_time.clock_ms)
        clock = PausableClock(virtual_time.clock_ms, virtual_time.clock_ms)
        shards = Shards(store, clock, broker_id=US, linger_ms=0, random=Random(0))
        gate = asyncio.Event()
        contents = [Content(), Content(gate), Content()]
        for content in contents:
            shards.add_content(content)
        opening = asyncio.create_task(shards.open(await assign_shards(store, US, 1, range(3))))
        await asyncio.sleep(1)
        assert [each.shards for each in contents] == [{0, 1, 2}, {0, 1, 2}, set()]
        assert not shards.served
        shards.drop([1])
        gate.set()
        await opening
        assert shards.served == {0, 2}
        assert [each.shards for each in contents] == [{0, 2}] * 3

    virtual_time.run(scenario, seed=0)
