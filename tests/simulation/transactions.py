"""Producers with transactions, and readers of committed records.

A producer here is its own coordinator: it decides, and sends markers until one of them is durable.
"""

import asyncio

from kafscale.errors import NotOwnerError, OffsetOutOfRangeError, OperatingError, OverloadedError
from kafscale.records import BatchView, split
from kafscale.records.control import ControlType
from kafscale.storage.log.appends import AppendResult
from simulation.brokers import Broker
from simulation.clients import IN_FLIGHT_MAX, READ_BYTES_MAX, Producer, SentBatch
from simulation.cluster import SimulatedCluster
from simulation.model import InvariantViolationError, SimulatedTopic
from simulation.outcomes import Outcome

WINDOWS_MAX = 3


class TransactionalProducer(Producer):
    """Sends batches in transactions, some of which it aborts."""

    _is_transactional = True

    async def run(self, batches_max: int) -> None:
        bumps_epoch = self._random.random() < 0.5  # As with KIP-890.
        while batches_max > 0 and not self.is_stopped and not self._topic.is_deleted:
            values = []
            for _ in range(self._random.randint(1, WINDOWS_MAX)):
                window = [self._next() for _ in range(self._random.randint(1, IN_FLIGHT_MAX))]
                batches_max -= len(window)
                sent = [value for each in window for value in each.values]
                self._model.transactions.decide(sent, Outcome.OPEN)
                values += sent
                await self._deliver(window)
                if self._random.random() < 0.3 and self._acknowledged:
                    await self._repeat(self._random.choice(self._acknowledged))
                await asyncio.sleep(self._random.choice((0, 0, 0.01, 0.3, 2)))
            control_type = self._random.choice(tuple(ControlType))
            is_commit = control_type is ControlType.COMMIT
            outcome = Outcome.COMMITTED if is_commit else Outcome.ABORTED
            self._model.transactions.decide(values, outcome)
            if bumps_epoch:
                self._start_epoch()
            self._acknowledged.clear()
            await self._end(control_type)

    async def _end(self, control_type: ControlType) -> None:
        while not self._topic.is_deleted:
            broker = self._assumed_leader(self._topic, self._partition)
            try:
                appended = self._find(broker).append_end_marker(
                    self._number, self._epoch, control_type, 0, broker.clock_ms()
                )
            except (NotOwnerError, OverloadedError):
                pass
            else:
                if appended.durable is None or await self._wait_durable(broker, appended.durable):
                    return
            await asyncio.sleep(self._random.uniform(0.05, 0.5))

    def _append(self, broker: Broker, sent: SentBatch) -> AppendResult:
        log = self._find(broker)
        batch = BatchView(bytearray(sent.data))
        header = batch.header()
        guard = None
        if log.needs_verification(header):
            guard = log.start_verification(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                adds_partition=False,
            )
        return log.append(batch, broker.clock_ms(), header, guard)


async def read_committed(
    cluster: SimulatedCluster, broker: Broker, topic: SimulatedTopic, partition: int
) -> None:
    """Read committed records once, from a random offset, and check them."""
    log = broker.engine.logs.find_by_id(topic.id, partition)
    if log is None or log.closed:
        return
    random, model = cluster.random, topic.partitions[partition]
    end_offset = log.last_stable_offset
    offset = random.randint(log.start_offset, end_offset)
    reader = broker.engine.reader
    try:
        slices, following = await reader.read(
            log, offset, random.choice(READ_BYTES_MAX), first=True, end_offset=end_offset
        )
        aborted = await reader.aborted_transactions(log, offset, following)
    except (OffsetOutOfRangeError, OperatingError, NotOwnerError):
        return
    if log.closed or offset < log.start_offset:
        return
    batches = split(b"".join(slices))
    if batches and batches[-1].next_offset > end_offset:
        raise InvariantViolationError(f"{log!r}: read to {batches[-1]}, beyond {end_offset}")
    model.transactions.check_read(log, batches, aborted)


async def check_all_committed(
    cluster: SimulatedCluster, broker: Broker, topic: SimulatedTopic, partition: int
) -> None:
    """Read everything; all transactions must have ended."""
    log = broker.engine.logs.get(topic.name, partition)
    assert log is not None
    if log.last_stable_offset != log.high_watermark:
        raise InvariantViolationError(f"{log!r}: {log.transactions.describe()} are open")
    offset, end_offset = log.start_offset, log.high_watermark
    reader = broker.engine.reader
    while offset < end_offset:
        bytes_max = cluster.random.choice(READ_BYTES_MAX)
        try:
            slices, following = await reader.read(
                log, offset, bytes_max, first=True, end_offset=end_offset
            )
            aborted = await reader.aborted_transactions(log, offset, following)
        except (OffsetOutOfRangeError, OperatingError):
            offset = max(offset, log.start_offset)  # Retention may have deleted it meanwhile.
            await asyncio.sleep(0.1)
            continue
        if offset >= log.start_offset:
            batches = split(b"".join(slices))
            topic.partitions[partition].transactions.check_read(log, batches, aborted)
        offset = max(following, log.start_offset)
