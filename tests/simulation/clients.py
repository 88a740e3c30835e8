"""The clients of simulated brokers: producers that try again, and readers that look twice."""

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random

from kafscale.errors import (
    NotOwnerError,
    OffsetOutOfRangeError,
    OperatingError,
    OutOfOrderSequenceError,
    OverloadedError,
)
from kafscale.records import BatchView, Record, build
from kafscale.storage.log import timestamp_lookup
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.testing.virtual_time import clock_ms
from simulation.brokers import Broker
from simulation.model import BrokenPromiseError, Identity, PartitionModel
from simulation.world import World

IN_FLIGHT_MAX = 5
READ_BYTES_MAX = (1, 100, 400, 2000, 1_000_000)


class Sent:
    """A batch of a producer, which may be sent more than once."""

    def __init__(self, data: bytes, values: list[bytes], timestamp_ms: int) -> None:
        self.data = data
        self.values = values
        self.timestamp_ms = timestamp_ms
        self.base_offset: int | None = None


class Producer:
    """Sends batches to a partition, in order; what failed is sent again by idempotent ones."""

    def __init__(
        self,
        world: World,
        number: int,
        topic: Identity,
        partition: int,
        *,
        idempotent: bool,
        broker_in_sight: Callable[[Identity, int], Broker],
    ) -> None:
        self._world = world
        self._number = number
        self._topic = topic
        self._partition = partition
        self._idempotent = idempotent
        self._random = world.random
        self._broker_in_sight = broker_in_sight
        self._sequence = 0
        self._counter = 0
        self._acknowledged: deque[Sent] = deque(maxlen=IN_FLIGHT_MAX)
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

    async def _deliver(self, window: list[Sent]) -> None:
        """Send until all is acknowledged; a producer without a memory sends once."""
        while not self._topic.is_deleted:
            if await self._try(window) or not self._idempotent:
                return
            await asyncio.sleep(self._random.uniform(0.05, 0.5))

    async def _try(self, window: list[Sent]) -> bool:
        """Send the batches one behind the other; True if all of them are acknowledged."""
        broker = self._broker_in_sight(self._topic, self._partition)
        waiting = []
        for sent in window:
            try:
                appended = self._append(broker, sent)
            except (OverloadedError, NotOwnerError):
                break
            except OutOfOrderSequenceError as error:
                is_owner = self._world.is_owner(broker, self._topic, self._partition)
                if is_owner and not self._is_deleted(sent):
                    start = self._model.start_seen
                    raise BrokenPromiseError(
                        f"{self._topic.name}/{self._partition} from {start}: {error}"
                    ) from error
                break  # A broker of the past has not seen what came since.
            waiting.append((sent, appended))
        succeeded = len(waiting) == len(window)
        for sent, (base_offset, durable) in waiting:
            if durable is not None and not await self._wait(broker, durable):
                succeeded = False
            else:
                self._acknowledge(sent, base_offset)
        return succeeded

    def _append(self, broker: Broker, sent: Sent) -> tuple[int, "asyncio.Future[None] | None"]:
        log = self._find(broker)
        appended = log.append(BatchView(bytearray(sent.data)), clock_ms())
        return appended.base_offset, appended.durable

    def _find(self, broker: Broker) -> PartitionLog:
        log = broker.engine.logs.find_by_id(self._topic.id, self._partition)
        if log is None or broker.ended.is_set() or self._topic.is_deleted:
            raise NotOwnerError("the broker does not answer")
        return log

    async def _wait(self, broker: Broker, durable: "asyncio.Future[None]") -> bool:
        ended = asyncio.ensure_future(broker.ended.wait())
        await asyncio.wait({durable, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not durable.done():
            await asyncio.sleep(0)
            if not durable.done():
                raise BrokenPromiseError(
                    "a producer would wait for ever on a broker that has ended"
                )
        return not durable.cancelled() and durable.exception() is None

    def _is_deleted(self, sent: Sent) -> bool:
        return sent.base_offset is not None and sent.base_offset < self._model.start_seen

    def _acknowledge(self, sent: Sent, base_offset: int) -> None:
        if self._topic.is_deleted:
            return
        is_moved = sent.base_offset not in {None, base_offset}
        if is_moved and not self._is_deleted(sent):
            raise BrokenPromiseError(
                f"{sent.values} was at {sent.base_offset}, and now at {base_offset}"
            )
        sent.base_offset = base_offset
        for index, value in enumerate(sent.values):
            self._model.learn(base_offset + index, value, sent.timestamp_ms)
        if self._idempotent and sent not in self._acknowledged:
            self._acknowledged.append(sent)

    async def _repeat(self, sent: Sent) -> None:
        """Send a batch again although it was acknowledged, as after an answer that was lost."""
        await self._try([sent])

    def _next(self) -> Sent:
        count = self._random.choice((1, 1, 2, 3))
        padding = b"." * self._random.choice((0, 0, 20, 300))
        values = []
        for _ in range(count):
            values.append(b"%d-%d%b" % (self._number, self._counter, padding))
            self._counter += 1
        now_ms = clock_ms()
        records = [Record(index, now_ms, None, value) for index, value in enumerate(values)]
        data = build(
            records,
            producer_id=self._number if self._idempotent else -1,
            producer_epoch=0 if self._idempotent else -1,
            base_sequence=self._sequence if self._idempotent else -1,
        )
        self._sequence += count
        return Sent(bytes(data), values, now_ms)


class Reader:
    """Reads partitions, and tells their models what it gets."""

    def __init__(self, random: Random) -> None:
        self._random = random

    async def read_somewhere(self, broker: Broker, topic: Identity, partition: int) -> None:
        """Read once, from any offset, as much as it happens to want."""
        log = broker.engine.logs.find_by_id(topic.id, partition)
        if log is None or log.closed:
            return
        offset = self._random.randint(log.start_offset, log.high_watermark)
        bytes_max = self._random.choice(READ_BYTES_MAX)
        await self._read(broker, log, topic.partitions[partition], offset, bytes_max)

    async def read_all(self, broker: Broker, topic: Identity, partition: int) -> None:
        """Read a log from its start to its end; nothing may be missing."""
        log = broker.engine.logs.find(topic.name, partition)
        model = topic.partitions[partition]
        start_offset = offset = log.start_offset
        while offset < (end_offset := log.high_watermark):
            bytes_max = self._random.choice(READ_BYTES_MAX)
            following = await self._read(broker, log, model, offset, bytes_max)
            if following is None:
                if log.start_offset <= offset:
                    await asyncio.sleep(0.1)
                    continue
                following = start_offset = log.start_offset
            if following <= offset:
                raise BrokenPromiseError(f"{log!r}: nothing could be read from {offset}")
            offset = following
        model.check_whole(max(start_offset, log.start_offset), end_offset)

    async def look_for_time(self, broker: Broker, topic: Identity, partition: int) -> None:
        """Ask for the first record since the time of one that is known."""
        log = broker.engine.logs.find_by_id(topic.id, partition)
        known = topic.partitions[partition].any_known(self._random)
        if log is None or known is None:
            return
        offset, timestamp_ms = known
        try:
            found = await timestamp_lookup.offset_for_timestamp(
                broker.engine.reader, log, timestamp_ms
            )
        except OperatingError:
            return
        if (
            log.closed
            or broker.ended.is_set()
            or not log.start_offset <= offset < log.high_watermark
        ):
            return
        if found is None or found.offset > offset or found.timestamp_ms < timestamp_ms:
            raise BrokenPromiseError(
                f"{log!r}: {offset} has time {timestamp_ms}, but {found} was found"
            )

    async def _read(
        self, broker: Broker, log: PartitionLog, model: PartitionModel, offset: int, bytes_max: int
    ) -> int | None:
        """The offset to go on from; None if the read was refused for a good reason."""
        try:
            found, end = await broker.engine.reader.read(log, offset, bytes_max, first=True)
        except OffsetOutOfRangeError:
            if log.start_offset <= offset:
                raise BrokenPromiseError(f"{log!r}: {offset} was refused") from None
            return None
        except (OperatingError, NotOwnerError):
            return None
        if not found and offset < log.start_offset:
            return None
        model.check_read(log, offset, bytes_max, found, end)
        return end
