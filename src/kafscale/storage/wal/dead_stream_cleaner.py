"""Deletes the WAL objects of ended broker sessions once segments hold their records.

The controller does this for all brokers, because ended streams have no owner: its
`dead_stream_cleanup` calls `clean` with the offsets up to which partitions are rolled. `trimmer`
deletes the objects of streams that have an owner.

Invariants:

* Objects are deleted in order, oldest first.
* An object is deleted when, for each of its ranges, segments hold all records or the topic is gone.
* The fence stays until no suspended process that it stops can still wake up.
* Objects after the fence were never acknowledged, and those that the owner has trimmed are not
  needed: both are deleted at once.
"""

from collections.abc import Callable, Sequence

import msgspec

from kafscale.observability.logging import get_logger
from kafscale.storage.bucket import read_wal_ranges
from kafscale.storage.objects.store import PAGE_KEYS, ObjectInfo, ObjectStore
from kafscale.storage.wal.streams import Stream, Streams

logger = get_logger(__name__)

FENCE_RETENTION_MS = 24 * 60 * 60 * 1000
"""How long a fence is kept: much longer than a process may be suspended and wake up again."""

READ_AHEAD = 16
"""How many footers are read at once, oldest objects first."""

ABANDONED_MS = 10 * 60 * 1000
"""A stream without a live owner and without new objects for this time counts as abandoned."""

RolledEnd = Callable[[bytes, int], int | None]
"""The end of a partition's last segment, by topic id and partition; None if the topic is gone."""


class _Pin(msgspec.Struct, frozen=True, gc=False):
    """The last offset of a partition that an object holds."""

    topic_id: bytes
    partition: int
    last_offset: int


class DeadStreamCleaner:
    """Deletes the objects of fenced streams."""

    def __init__(self, store: ObjectStore, namespace: str, clock: Callable[[], int]) -> None:
        self._store = store
        self._streams = Streams(store, namespace, clock)
        self._clock = clock
        self._pins: dict[str, list[_Pin]] = {}
        """Ranges of existing objects by key: each footer is read once."""

    async def clean(self, rolled_end: RolledEnd, is_live: Callable[[int, int], bool]) -> int:
        """Delete objects that are no longer needed; return their number.

        `is_live` returns whether a broker id and epoch are a live broker session. An abandoned
        stream without a fence is fenced.
        """
        streams = await self._streams.all()
        listed = {item.key for stream in streams for item in stream.objects.values()}
        self._pins = {key: pins for key, pins in self._pins.items() if key in listed}
        count = 0
        for stream in streams:
            if is_live(stream.broker_id, stream.epoch):
                continue
            if stream.fence is not None:
                count += await self._clean(stream, rolled_end)
            elif self._is_abandoned(stream):
                await self._streams.fence(stream.broker_id, stream.epoch)
        return count

    def _is_abandoned(self, stream: Stream) -> bool:
        newest_ms = max((item.modified_ms for item in stream.objects.values()), default=0)
        return self._clock() - newest_ms > ABANDONED_MS

    async def _clean(self, stream: Stream, rolled_end: RolledEnd) -> int:
        """Delete the unneeded objects of a fenced stream."""
        assert stream.fence is not None
        if stream.after_fence and not await self._streams.is_fenced(stream):
            return 0  # The stream changed while it was listed.
        acknowledged = stream.acknowledged
        deletable_count = await self._count_deletable(acknowledged, rolled_end)
        to_delete = [*stream.after_fence, *stream.trimmed, *acknowledged[:deletable_count]]
        is_old = self._clock() - stream.fence.modified_ms > FENCE_RETENTION_MS
        if deletable_count == len(acknowledged) and is_old:
            to_delete.append(stream.fence)
        await self._delete(to_delete)
        if to_delete:
            logger.info(
                "wal objects of fenced stream deleted",
                broker=stream.broker_id,
                epoch=stream.epoch,
                count=len(to_delete),
                garbage=len(stream.after_fence),
            )
        return len(to_delete)

    async def _delete(self, items: Sequence[ObjectInfo]) -> None:
        keys = [item.key for item in items]
        for start in range(0, len(keys), PAGE_KEYS):
            await self._store.delete(keys[start : start + PAGE_KEYS])

    async def _count_deletable(self, items: Sequence[ObjectInfo], rolled_end: RolledEnd) -> int:
        """Number of objects, from the oldest, that are not needed."""
        for start in range(0, len(items), READ_AHEAD):
            chunk = items[start : start + READ_AHEAD]
            await self._load_ranges(chunk)
            for number, item in enumerate(chunk, start):
                if not self._is_deletable(item, rolled_end):
                    return number
        return len(items)

    def _is_deletable(self, item: ObjectInfo, rolled_end: RolledEnd) -> bool:
        remaining = []
        for pin in self._pins[item.key]:
            end_offset = rolled_end(pin.topic_id, pin.partition)
            if end_offset is not None and end_offset <= pin.last_offset:
                remaining.append(pin)
        self._pins[item.key] = remaining  # Rolled ranges stay rolled; no need to check them again.
        return not remaining

    async def _load_ranges(self, items: Sequence[ObjectInfo]) -> None:
        """Read what objects hold from their footers; a damaged object holds nothing."""
        new = [item for item in items if item.key not in self._pins]
        ranges = await read_wal_ranges(self._store, new)
        for item in new:
            self._pins[item.key] = [
                _Pin(range_.topic_id, range_.partition, range_.last_offset)
                for range_ in ranges.get(item.key, ())
            ]
