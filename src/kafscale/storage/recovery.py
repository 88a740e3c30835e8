"""Recovery: what earlier lives of this broker left in the WAL becomes the tails of its logs again.

Each life wrote a stream of its own (`_wal/{broker}/{epoch}/`), whose objects count up to the first
that is missing: what comes after a gap was never acknowledged, because objects count in order. The
stream is ended by a fence, create-only, in the first free place, so that a process that still
believes in its epoch cannot add to it any more; if it was faster, its object counts and the next
place is tried.

Every life opens its stream with an empty object before it looks at the others. Of two lives that
begin at the same time, at least one so sees the other: the older gives up, or is fenced by the
younger.

A damaged object that is followed by another was whole once, and acknowledged: that is said aloud,
and the rest is read. One at the very end was never whole.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from itertools import islice

from kafscale.errors import (
    DamagedObjectError,
    FencedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreUnavailableError,
)
from kafscale.observability.logging import get_logger
from kafscale.storage import layout, wal
from kafscale.storage.log import PartitionLog
from kafscale.storage.objects.base import ObjectInfo, ObjectStore
from kafscale.storage.run import Run
from kafscale.storage.trim import DurableObject

log = get_logger(__name__)

FENCE_KEPT_MS = 24 * 60 * 60 * 1000
"""How long a fence outlives its stream: far longer than a process may be asleep and wake again."""

TAKING_BACK_TRIES_MAX = 10
"""How often a fence that must not stay is deleted before the store is given up."""

READS_MAX = 8
"""How many objects are read at once: it hides the latency of a bucket, and bounds the memory."""

FindLog = Callable[[bytes, int], PartitionLog | None]

Streams = dict[int, dict[int, ObjectInfo]]
"""The WAL objects of a broker, by epoch and sequence."""


async def list_streams(store: ObjectStore, namespace: str, broker_id: int) -> Streams:
    """The WAL objects of all lives of a broker."""
    streams: Streams = defaultdict(dict)
    async for chunk in store.list(layout.wal_prefix(namespace, broker_id)):
        for item in chunk:
            place = layout.parse_wal(namespace, item.key)
            if place is None:
                log.warning("object ignored that is no WAL object", key=item.key)
            else:
                streams[place.epoch][place.sequence] = item
    return dict(sorted(streams.items()))


class Recovery:
    """Begins a life's own stream, and ends and replays those of earlier lives."""

    def __init__(
        self, store: ObjectStore, namespace: str, broker_id: int, epoch: int, *, find_log: FindLog,
        clock: Callable[[], int],
    ) -> None:  # fmt: skip
        self._store = store
        self._namespace = namespace
        self._broker_id = broker_id
        self._epoch = epoch
        self._find_log = find_log
        self._clock = clock
        self.recovered_bytes = 0

    async def begin(self) -> None:
        """Take the first place of this life's stream, so that later lives know of it."""
        key = self._key(self._epoch, 0)
        header = wal.Header(self._broker_id, self._epoch, 0, self._clock())
        parts = wal.encode_opening(header)
        try:
            await self._store.put(key, parts, create=True)
        except ObjectExistsError:
            # It may be ours: a store's client that tries again meets its own first success.
            if bytes(await self._store.get(key)) != b"".join(parts):
                raise FencedError(f"epoch {self._epoch} is somebody else's") from None

    # --- ending -------------------------------------------------------------------------------

    async def end_streams(self) -> Streams:
        """End the streams of all earlier lives; return what counts of them, fences included."""
        streams = await list_streams(self._store, self._namespace, self._broker_id)
        if max(streams, default=0) > self._epoch:
            raise FencedError(f"epoch {self._epoch} is over: there is a later one")
        for epoch, objects in streams.items():
            if epoch < self._epoch:
                await self._end(epoch, objects)
        return streams

    async def _end(self, epoch: int, objects: dict[int, ObjectInfo]) -> None:
        """Find the fence of a stream, or put one behind the last object that counts."""
        fences = [number for number, item in objects.items() if await self._is_fence(item)]
        # Below a fence everything counts: it was contiguous once, and has been trimmed since. Of
        # several, the others are those of lives that failed to open, and came late.
        end = max(fences) if fences else await self._fence(epoch, objects)
        beyond = [number for number in objects if number > end]
        if beyond:
            log.warning("WAL objects deleted that were never acknowledged", count=len(beyond))
            await self._store.delete([objects.pop(number).key for number in beyond])

    async def _is_fence(self, item: ObjectInfo) -> bool:
        if item.size_bytes != wal.EMPTY_BYTES:
            return False
        try:
            return wal.decode(item.key, await self._store.get(item.key)).header.is_fence
        except DamagedObjectError:
            return False

    async def _fence(self, epoch: int, objects: dict[int, ObjectInfo]) -> int:
        """Put a fence into the first place that is free, and return which one that is."""
        sequence = min(objects)
        while True:
            while sequence in objects:
                sequence += 1
            key = self._key(epoch, sequence)
            header = wal.Header(self._broker_id, epoch, sequence, self._clock(), is_fence=True)
            is_ours = True
            try:
                await self._store.put(key, wal.encode_fence(header), create=True)
            except ObjectExistsError:
                is_ours = False
            if is_ours:
                await self._check_effective(epoch, sequence)
            objects[sequence] = found = await self._store.head(key)
            if is_ours or await self._is_fence(found):
                return sequence
            # The former owner was faster: its object is in the stream, and counts.

    async def _check_effective(self, epoch: int, sequence: int) -> None:
        """Take back a fence that came too late, and raise `ObjectNotFoundError`.

        A former owner may be so fast that it has written, rolled and trimmed since the listing, and
        left this place behind. It trims in order and never its newest object: as long as the one
        before the fence is there, the owner has not been here.
        """
        try:
            await self._store.head(self._key(epoch, sequence - 1))
        except ObjectNotFoundError:
            for is_last in (*[False] * (TAKING_BACK_TRIES_MAX - 1), True):
                try:
                    await self._store.delete([self._key(epoch, sequence)])
                    break
                except StoreUnavailableError:
                    if is_last:
                        raise
            raise

    # --- replaying ----------------------------------------------------------------------------

    async def replay(self, streams: Streams) -> list[DurableObject]:
        """Give the logs what the streams hold for them; return their objects, oldest first.

        An object that is gone meanwhile raises `ObjectNotFoundError`: segments hold its records,
        but perhaps none that the logs know of.
        """
        self.recovered_bytes = 0
        replayed: list[DurableObject] = []
        for epoch, objects in streams.items():
            *counting, last = (item for _, item in sorted(objects.items()))
            async with aclosing(self._contents(counting)) as contents:
                async for item, data in contents:
                    replayed.append(self._take(item, data, is_last=item is counting[-1]))
            if epoch == self._epoch:
                replayed.append(DurableObject(last.key, last.size_bytes, {}))
            elif not counting and self._clock() - last.modified_ms > FENCE_KEPT_MS:
                await self._store.delete([last.key])
        return replayed

    async def _contents(
        self, items: Sequence[ObjectInfo]
    ) -> AsyncGenerator[tuple[ObjectInfo, memoryview], None]:
        """Objects in their order, each with what it holds; those that follow are read meanwhile."""
        left = iter(items)
        reads: deque[tuple[ObjectInfo, asyncio.Task[memoryview]]] = deque()
        try:
            while True:
                for item in islice(left, READS_MAX - len(reads)):
                    reads.append((item, asyncio.create_task(self._get(item.key))))
                if not reads:
                    return
                item, read = reads.popleft()
                yield item, await read
        finally:
            for _, read in reads:
                read.cancel()
            await asyncio.gather(*(read for _, read in reads), return_exceptions=True)

    async def _get(self, key: str) -> memoryview:
        return await self._store.get(key)

    def _take(self, item: ObjectInfo, data: memoryview, *, is_last: bool) -> DurableObject:
        """Give the logs what an object holds for them."""
        pins: dict[PartitionLog, int] = {}
        durable = DurableObject(item.key, item.size_bytes, pins)
        try:
            found = self._decode(item.key, data)
        except DamagedObjectError as error:
            tell = log.warning if is_last else log.error
            tell("damaged WAL object skipped", key=item.key, reason=error.reason, last=is_last)
            return durable
        for piece in found.ranges:
            partition = self._find_log(piece.topic_id, piece.partition)
            if partition is None:
                continue  # Of a topic that has been deleted.
            if piece.last_offset >= partition.end_offset:
                partition.recover(Run.parsed(found.body(piece)), self._clock())
                self.recovered_bytes += piece.length
            pins[partition] = piece.last_offset
        return durable

    def _decode(self, key: str, data: memoryview) -> wal.WalObject:
        """An object that is whole, and the one that belongs under its key.

        A loss of power may leave the file of a younger object under an older name, where files are
        used again.
        """
        found = wal.decode(key, data)
        header = found.header
        if key != layout.wal_key(self._namespace, header.broker_id, header.epoch, header.sequence):
            raise DamagedObjectError(key, f"it is object {header.sequence} of epoch {header.epoch}")
        return found

    def _key(self, epoch: int, sequence: int) -> str:
        return layout.wal_key(self._namespace, self._broker_id, epoch, sequence)
