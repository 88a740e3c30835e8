"""The events of brokers: crashes, lost leases, suspended processes, restarts, and moved partitions.

A zombie is a broker whose partitions others have taken over, and which has not noticed it. It may
be awake, disconnected, or suspended with requests that it had begun.
"""

import asyncio
from random import Random
from typing import Final

from kafscale.errors import NotOwnerError, OperatingError
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.segments.segment_writer import RollReason
from simulation.brokers import Broker
from simulation.cluster import SimulatedCluster
from simulation.features import Feature
from simulation.model import SimulatedTopic

HOUR_MS: Final = 3600 * 1000
CLOCK_STEPS_MS: Final = (-3 * HOUR_MS, -60_000, -1000, 1000, 60_000, 20 * 60_000, 3 * HOUR_MS)


class BrokerEvents:
    """Lets random events happen to brokers."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._random: Random = cluster.random
        self.zombies: list[Broker] = []

    def any_broker(self) -> Broker:
        return self._random.choice(self._cluster.live_brokers())

    def awake(self) -> list[Broker]:
        """The zombies that are not suspended."""
        return [zombie for zombie in self.zombies if zombie.store.resumed is None]

    async def crash(self, broker: Broker | None = None) -> None:
        broker = broker or self.any_broker()
        await broker.crash()
        if self._random.random() < 0.5:
            await asyncio.sleep(self._random.uniform(0, 3))
        await self._replace_broker(broker)

    async def disconnect_store(self) -> None:
        """Disconnect a broker from its store for a while."""
        store = self.any_broker().store
        store.is_down = True
        await asyncio.sleep(self._random.uniform(0.1, 5))
        store.is_down = False

    async def disconnect_metadata(self) -> None:
        """Disconnect a broker from the metadata store, maybe until its lease is in doubt."""
        broker = self.any_broker()
        broker.metadata.is_down = True
        broker.store.is_down = self._random.random() < 0.3
        await asyncio.sleep(self._random.uniform(0.1, 5))
        if self._random.random() < 0.5:
            broker.has_lease = False
            await asyncio.sleep(self._random.uniform(0.1, 5))
        broker.has_lease = True
        broker.metadata.is_down = broker.store.is_down = False

    async def step_clock(self) -> None:
        """Change the wall clock of a broker, or of the controller."""
        offset_ms = self._random.choice(CLOCK_STEPS_MS)
        self._cluster.clock_ahead_ms = max(self._cluster.clock_ahead_ms, offset_ms)
        if self._random.random() < 0.2:
            self._cluster.controller_offset_ms = offset_ms
        else:
            self.any_broker().clock_offset_ms = offset_ms

    # --- zombies --------------------------------------------------------------------------------

    async def take_over_running(self) -> None:
        """Others take over from a broker that continues and believes it is the owner."""
        broker = self.any_broker()
        broker.store.is_down = self._random.random() < 0.5
        if Feature.METADATA_OUTAGES in self._cluster.features:
            broker.metadata.is_down = self._random.random() < 0.5
        broker.has_lease = False
        self.zombies.append(broker)
        if self._random.random() < 0.5:
            # It rolls segments and trims its stream just while others read both.
            self._roll_all_later(broker, self._random.uniform(0, 0.5))
        await self._replace_broker(broker)
        broker.store.is_down = False

    async def suspend(self) -> None:
        """Suspend a process that has requests in flight; others take over."""
        broker = self.any_broker()
        self._roll_all_later(broker, 0)
        if self._random.random() < 0.5:
            self._start_retention(broker)
        await asyncio.sleep(self._random.choice((0, 0.001, 0.02, 0.1, 0.5)))
        broker.suspend()
        broker.has_lease = False
        self.zombies.append(broker)
        await self._replace_broker(broker)
        delay_seconds = self._random.choice((0, 0.5, 5, 60, None))
        if delay_seconds is not None:  # Else it continues when the scenario resumes zombies.
            asyncio.get_running_loop().call_later(delay_seconds, broker.resume)

    def _roll_all_later(self, broker: Broker, delay_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        for log in broker.engine.logs:
            schedule_roll = broker.engine.roll_scheduler.schedule_roll
            loop.call_later(delay_seconds, schedule_roll, log, RollReason.EXPLICIT)

    def _start_retention(self, broker: Broker) -> None:
        for log in list(broker.engine.logs):
            retention = asyncio.create_task(broker.engine.retention.enforce(log))
            retention.add_done_callback(_retrieve)

    async def rejoin(self) -> None:
        """A broker that was taken over notices it, and rejoins if its id is free."""
        if not self.zombies:
            return
        zombie = self.zombies.pop(self._random.randrange(len(self.zombies)))
        zombie.resume()
        zombie.metadata.is_down = False
        if zombie.id in self._cluster.registered:
            await zombie.crash()
        else:
            zombie.end_session()
            await self._cluster.register(zombie)

    def resume_zombies(self) -> None:
        for zombie in self.zombies:
            zombie.resume()

    async def end_zombies(self) -> None:
        for zombie in self.zombies:
            await zombie.crash()
            zombie.resume()
        self.zombies.clear()

    # --- sessions -------------------------------------------------------------------------------

    async def lose_lease(self) -> None:
        """A broker notices that its lease is lost, and starts the next session."""
        broker = self.any_broker()
        broker.end_session()
        if len(self._cluster.registered) > 1 and self._random.random() < 0.5:
            others = [other for other in self._cluster.live_brokers() if other is not broker]
            await self._cluster.take_over(broker, others)
            await self._cluster.register(broker)
        else:
            await self._cluster.start_next_session(broker)

    async def restart(self) -> None:
        broker = self.any_broker()
        await broker.stop()
        await self._replace_broker(broker)

    async def _replace_broker(self, broker: Broker) -> None:
        """Others take over from a broker, or a new process of the same id does."""
        others = [other for other in self._cluster.live_brokers() if other is not broker]
        if not others or self._random.random() < 0.5:
            successor = self._cluster.new_broker(broker.id)
            await self._cluster.register(successor)
            others.append(successor)
        await self._cluster.take_over(broker, others)

    # --- partitions -----------------------------------------------------------------------------

    async def move(self) -> None:
        """Transfer a partition in an orderly way, if its owner can."""
        topic, number, _ = self._random.choice(self._cluster.partitions())
        owner, log = self._cluster.owner(topic, number), self._cluster.log(topic, number)
        try:
            async with asyncio.timeout(self._random.choice((0.01, 1, 30))):
                await owner.engine.release(log)
        except (TimeoutError, OperatingError, NotOwnerError):
            return
        if self._random.random() < 0.1:
            log.resume_appends()
        elif self._random.random() < 0.5:
            self._remove(owner, topic, number, log)
            await self._cluster.assign(
                [(topic, number)], self._cluster.live_brokers(), fully_rolled=True
            )
        else:
            others = [other for other in self._cluster.live_brokers() if other is not owner]
            if others:
                await self._cluster.assign([(topic, number)], others, fully_rolled=True)
                owner.engine.remove(log)
            else:
                log.resume_appends()

    def _remove(self, owner: Broker, topic: SimulatedTopic, number: int, log: PartitionLog) -> None:
        owner.drop(self._cluster.owners[topic.id, number])
        owner.engine.remove(log)


def _retrieve(task: "asyncio.Task[None]") -> None:
    """Mark the exception as retrieved: the operation may fail."""
    if not task.cancelled():
        task.exception()
