"""The clients of simulated brokers: producers with retries, and readers."""

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random

from doubles.virtual_time import clock_ms
from kafscale.errors import (
    NotOwnerError,
    OffsetOutOfRangeError,
    OperatingError,
    OutOfOrderSequenceError,
    OverloadedError,
    RecordsError,
)
from kafscale.records import BatchView, Record, build
from kafscale.storage.log import timestamp_lookup
from kafscale.storage.log.appends import AppendResult
from kafscale.storage.log.partition_log import PartitionLog
from simulation.brokers import Broker
from simulation.cluster import SimulatedCluster
from simulation.model import InvariantViolationError, PartitionModel, SimulatedTopic

IN_FLIGHT_MAX = 5
READ_BYTES_MAX = (1, 100, 400, 2000, 1_000_000)


class SentBatch:
    """A batch of a producer, which may be sent more than once."""

    def __init__(self, data: bytes, values: list[bytes], timestamp_ms: int) -> None:
        self.data = data
        self.values = values
        self.timestamp_ms = timestamp_ms
        self.base_offset: int | None = None


class Producer:
    """Sends batches to a partition, in order; idempotent producers retry failed ones."""

    _is_transactional = False

    def __init__(
        self,
        cluster: SimulatedCluster,
        number: int,
        topic: SimulatedTopic,
        partition: int,
        *,
        idempotent: bool,
        assumed_leader: Callable[[SimulatedTopic, int], Broker],
    ) -> None:
        self._cluster = cluster
        self._number = number
        self._topic = topic
        self._partition = partition
        self._idempotent = idempotent
        self._random = cluster.random
        self._assumed_leader = assumed_leader
        self._epoch = 0
        self._sequence = 0
        self._counter = 0
        self._acknowledged: deque[SentBatch] = deque(maxlen=IN_FLIGHT_MAX)
        self.is_stopped = False

    @property
    def _model(self) -> PartitionModel:
        return self._topic.partitions[self._partition]

    async def run(self, batches_max: int) -> None:
        while batches_max > 0 and not self.is_stopped and not self._topic.is_deleted:
            window = [self._next() for _ in range(self._random.randint(1, IN_FLIGHT_MAX))]
            batches_max -= len(window)
            await self._deliver(window)
            if self._idempotent and self._acknowledged and self._random.random() < 0.3:
                await self._repeat(self._random.choice(self._acknowledged))
            await asyncio.sleep(self._random.choice((0, 0, 0.01, 0.3, 2)))

    async def _deliver(self, window: list[SentBatch]) -> None:
        """Send until everything is acknowledged; a producer without idempotence sends once.

        A producer whose earlier batches were lost gives up, and continues with the next epoch.
        """
        while not self._topic.is_deleted:
            epoch = self._epoch
            if await self._try(window) or not self._idempotent or self._epoch != epoch:
                return
            await asyncio.sleep(self._random.uniform(0.05, 0.5))

    async def _try(self, window: list[SentBatch]) -> bool:
        """Send the batches in a pipeline; return whether all of them are acknowledged."""
        epoch = self._epoch
        broker = self._assumed_leader(self._topic, self._partition)
        waiting = []
        for sent in window:
            try:
                appended = self._append(broker, sent)
            except (OverloadedError, NotOwnerError):
                break
            except OutOfOrderSequenceError as error:
                is_owner = self._cluster.is_owner(broker, self._topic, self._partition)
                # After a marker, what is known of the producer does not go with its batches.
                is_forgotten = self._is_transactional and self._model.start_seen > 0
                if is_owner and (self._model.has_damage() or is_forgotten):
                    self._start_epoch()
                elif is_owner and not self._is_deleted(sent):
                    start = self._model.start_seen
                    raise InvariantViolationError(
                        f"{self._topic.name}/{self._partition} from {start}: {error}"
                    ) from error
                break  # A former leader has not seen later batches.
            waiting.append((sent, appended))
        succeeded = len(waiting) == len(window)
        for sent, appended in waiting:
            if appended.durable is not None and not await self._wait_durable(
                broker, appended.durable
            ):
                succeeded = False
            else:
                self._acknowledge(sent, appended)
        if self._epoch != epoch:
            self._acknowledged.clear()  # Those sent before the failure have the former epoch.
        return succeeded

    def _append(self, broker: Broker, sent: SentBatch) -> AppendResult:
        log = self._find(broker)
        return log.append(BatchView(bytearray(sent.data)), broker.clock_ms())

    def _find(self, broker: Broker) -> PartitionLog:
        log = broker.engine.logs.find_by_id(self._topic.id, self._partition)
        if log is None or broker.ended.is_set() or self._topic.is_deleted:
            raise NotOwnerError("the broker does not respond")
        return log

    async def _wait_durable(self, broker: Broker, durable: "asyncio.Future[None]") -> bool:
        ended = asyncio.ensure_future(broker.ended.wait())
        await asyncio.wait({durable, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not durable.done():
            await asyncio.sleep(0)
            if not durable.done():
                raise InvariantViolationError(
                    "a producer would wait for ever on a broker that has ended"
                )
        return not durable.cancelled() and durable.exception() is None

    def _start_epoch(self) -> None:
        """Continue as clients do after an error of sequences: the batches before are not sent."""
        self._epoch += 1
        self._sequence = 0

    def _is_deleted(self, sent: SentBatch) -> bool:
        return sent.base_offset is not None and sent.base_offset < self._model.start_seen

    def _is_damaged(self, sent: SentBatch) -> bool:
        """Whether an acknowledged batch may be lost, and was appended again."""
        start = sent.base_offset
        return start is not None and self._model.is_damaged(start, start + len(sent.values))

    def _acknowledge(self, sent: SentBatch, appended: AppendResult) -> None:
        if self._topic.is_deleted:
            # If the deletion fails, too many later batches are stored to repeat earlier ones.
            self._acknowledged.clear()
            return
        base_offset = appended.base_offset
        is_moved = sent.base_offset not in {None, base_offset}
        if is_moved and not self._is_deleted(sent) and not self._is_damaged(sent):
            raise InvariantViolationError(
                f"{sent.values} was at {sent.base_offset}, and now at {base_offset}"
            )
        sent.base_offset = base_offset
        append_time_ms = appended.timestamp_ms
        timestamp_ms = append_time_ms if append_time_ms >= 0 else sent.timestamp_ms
        for index, value in enumerate(sent.values):
            self._model.record(base_offset + index, value, timestamp_ms)
        if self._idempotent and sent not in self._acknowledged:
            self._acknowledged.append(sent)

    async def _repeat(self, sent: SentBatch) -> None:
        """Send an acknowledged batch again, as after a lost response."""
        await self._try([sent])

    def _next(self) -> SentBatch:
        count = self._random.choice((1, 1, 2, 3))
        padding = b"." * self._random.choice((0, 0, 20, 300))
        values = []
        for _ in range(count):
            values.append(b"%d-%d%b" % (self._number, self._counter, padding))
            self._counter += 1
        now_ms = clock_ms()
        keys = self._random.choices((None, b"a", b"b", b"c"), k=count)
        records = [
            Record(index, now_ms, key, value)
            for index, (key, value) in enumerate(zip(keys, values, strict=True))
        ]
        data = build(
            records,
            producer_id=self._number if self._idempotent else -1,
            producer_epoch=self._epoch if self._idempotent else -1,
            base_sequence=self._sequence if self._idempotent else -1,
            transactional=self._is_transactional,
        )
        self._sequence += count
        return SentBatch(bytes(data), values, now_ms)


class Reader:
    """Reads partitions, and records in their models what it gets."""

    def __init__(self, random: Random) -> None:
        self._random = random

    async def read_somewhere(self, broker: Broker, topic: SimulatedTopic, partition: int) -> None:
        """Read once, from a random offset, with a random limit."""
        log = broker.engine.logs.find_by_id(topic.id, partition)
        if log is None or log.closed:
            return
        offset = self._random.randint(log.start_offset, log.high_watermark)
        bytes_max = self._random.choice(READ_BYTES_MAX)
        await self._read(broker, log, topic.partitions[partition], offset, bytes_max)

    async def read_all(self, broker: Broker, topic: SimulatedTopic, partition: int) -> None:
        """Read a log from its start to its end; nothing may be missing."""
        log = broker.engine.logs.get(topic.name, partition)
        assert log is not None
        model = topic.partitions[partition]
        start_offset = offset = log.start_offset
        while offset < (end_offset := log.high_watermark):
            bytes_max = self._random.choice(READ_BYTES_MAX)
            following = await self._read(broker, log, model, offset, bytes_max)
            if following is None:
                assert not log.closed, "the owner closed the log while it was read"
                if log.start_offset <= offset:
                    if model.is_damaged(offset, offset + 1):
                        offset += 1
                    await asyncio.sleep(0.1)
                    continue
                following = start_offset = log.start_offset
            if following == offset and model.is_damaged(offset, end_offset):
                break  # The last records are lost: a client waits here for the next ones.
            if following <= offset:
                raise InvariantViolationError(f"{log!r}: nothing could be read from {offset}")
            offset = following
        model.check_complete(max(start_offset, log.start_offset), end_offset)

    async def look_up_timestamp(
        self, broker: Broker, topic: SimulatedTopic, partition: int
    ) -> None:
        """Find the offset for the timestamp of a known record."""
        log = broker.engine.logs.find_by_id(topic.id, partition)
        known = topic.partitions[partition].random_record(self._random)
        if log is None or known is None:
            return
        offset, timestamp_ms = known
        try:
            result = await timestamp_lookup.offset_for_timestamp(
                broker.engine.reader, log, timestamp_ms
            )
        except (OperatingError, NotOwnerError):
            return
        if (
            log.closed
            or broker.ended.is_set()
            or not log.start_offset <= offset < log.high_watermark
            or topic.partitions[partition].may_miss(offset)
        ):
            return
        if result is None or result.offset > offset or result.timestamp_ms < timestamp_ms:
            raise InvariantViolationError(
                f"{log!r}: {offset} has time {timestamp_ms}, but {result} was found"
            )

    async def _read(
        self, broker: Broker, log: PartitionLog, model: PartitionModel, offset: int, bytes_max: int
    ) -> int | None:
        """The offset to continue from; None if the read was rejected for a valid reason."""
        try:
            result, end = await broker.engine.reader.read(log, offset, bytes_max, first=True)
        except OffsetOutOfRangeError:
            if log.start_offset <= offset:
                raise InvariantViolationError(f"{log!r}: {offset} was refused") from None
            return None
        except (OperatingError, NotOwnerError):
            return None
        if not result and offset < log.start_offset:
            return None
        try:
            model.check_read(log, offset, bytes_max, result, end)
        except (RecordsError, InvariantViolationError):
            if not model.has_damage_after(offset):
                raise
            return None  # Brokers do not verify what they read; the clients do.
        return end
