"""Clients of simulated brokers: producers by topic id and by name, and readers."""

import asyncio
from collections.abc import Callable

from doubles.virtual_time import clock_ms
from kafscale.errors import NotOwnerError, OutOfOrderSequenceError, OverloadedError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.topic_codec import decode_topic
from kafscale.records import BatchView, Record, build
from simulation.clients import Producer
from simulation.model import InvariantViolationError, SimulatedTopic
from simulation.node_cluster import NodeCluster
from simulation.node_process import NodeProcess

TIMEOUT_SECONDS = 30.0

ChooseNode = Callable[[str, int], NodeProcess]
"""The process that a client believes to lead a partition."""


class IdProducer(Producer):
    """Produces by topic id, to whichever process seems to lead the partition."""

    def __init__(
        self,
        cluster: NodeCluster,
        number: int,
        topic: SimulatedTopic,
        partition: int,
        *,
        idempotent: bool,
        choose: ChooseNode,
    ) -> None:
        super().__init__(
            cluster,
            number,
            topic,
            partition,
            idempotent=idempotent,
            assumed_leader=lambda topic, partition: choose(topic.name, partition),
        )
        self.topic = topic

    def _append(self, broker, sent):
        log = broker.find("", self._topic.id, self._partition)
        batch = BatchView(bytearray(sent.data))
        return broker.process.call(log.append, batch, broker.clock())

    async def _try(self, window):
        try:
            return await super()._try(window)
        except OutOfOrderSequenceError:
            return False

    async def _wait_durable(self, broker, durable):
        return await wait_durable(broker, durable)


class NameProducer:
    """Produces by topic name, to the topic that a process has under this name."""

    def __init__(self, cluster: NodeCluster, number: int, name: str, choose: ChooseNode) -> None:
        self._cluster = cluster
        self._number = number
        self._name = name
        self._choose = choose
        self._counter = 0
        self.is_stopped = False

    async def run(self, count: int) -> None:
        random = self._cluster.random
        for _ in range(count):
            if self.is_stopped:
                return
            partition = random.randrange(3)
            await self._send(self._choose(self._name, partition), partition)
            await asyncio.sleep(random.choice((0.01, 0.1, 0.5, 3)))

    async def _send(self, node: NodeProcess, partition: int) -> None:
        try:
            log = node.find(self._name, b"", partition)
            self._counter += 1
            value = b"%d-%d-by-name" % (self._number, self._counter)
            batch = BatchView(bytearray(build([Record(0, clock_ms(), None, value)])))
            appended = node.process.call(log.append, batch, node.clock())
        except (NotOwnerError, OverloadedError):
            return
        entry = await self._cluster.metadata.get(keys.topic_config(self._name))
        existing = decode_topic(entry).id if entry else None
        if not await wait_durable(node, appended.durable):
            return
        if existing not in {None, log.topic_id}:
            raise InvariantViolationError(
                f"{node} acknowledged {value!r} for {self._name} with id {log.topic_id.hex()},"
                f" but the topic had the id {existing.hex()} when it was sent"
            )
        model = self._cluster.model(log.topic_id, partition)
        model.record(appended.base_offset, value, clock_ms())


async def wait_durable(node: NodeProcess, durable: "asyncio.Future[None] | None") -> bool:
    """Wait for the response of a produce request, as long as a client does."""
    if durable is None:
        return True
    ended = asyncio.ensure_future(node.ended.wait())
    await asyncio.wait(
        {durable, ended}, return_when=asyncio.FIRST_COMPLETED, timeout=TIMEOUT_SECONDS
    )
    is_ended = ended.done()
    ended.cancel()
    return (
        durable.done() and not is_ended and not durable.cancelled() and durable.exception() is None
    )
