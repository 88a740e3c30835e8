"""Validation of the segments that are to replace some of a partition.

A job stages them in the bucket (`Staging`); the owner's own compaction has them in memory
(`BuiltSegment`).

Invariants of staged segments: each is undamaged and begins at the offset in its key; they are
contiguous; together they span exactly a range of whole segments of the log, none of them below the
log start offset; each begins where one of those begins. So no key comes into use again that was
deleted before: see `swap`. Violations raise `InvalidRequestError`.
"""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Protocol

import msgspec

from kafscale.aio.gather import map_limited
from kafscale.errors import DamagedObjectError, InvalidRequestError
from kafscale.storage.bucket import read_segment_footer
from kafscale.storage.formats import index as index_format
from kafscale.storage.formats import object_keys
from kafscale.storage.formats import segment as segment_format
from kafscale.storage.formats.index import Index
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.objects.store import ObjectStore

READS_MAX: Final = 16
"""How many footers are read at once."""


class StagedSegment(msgspec.Struct, frozen=True, gc=False):
    """A segment to be swapped in."""

    key: str
    base_offset: int
    next_offset: int
    size_bytes: int
    checksum: int
    max_timestamp_ms: int


class SegmentSource(Protocol):
    """Where a swap gets its new segments from."""

    @property
    def keys(self) -> Sequence[str]:
        """The objects to delete after the swap."""

    async def load(self) -> list[StagedSegment]:
        """Read and validate the new segments; return them in order."""

    async def read(self, new: StagedSegment) -> tuple[memoryview, Index]:
        """The content of a new segment, and its index."""


class BuiltSegment:
    """One new segment in memory with its index, made of segments of this log.

    `swap_count` is that of the log when those were read: if they were replaced since, what was made
    of them may be older than what it would replace. The process that made the segment has read its
    batches, of which there may be millions; here, only its checksum is verified.
    """

    keys: Sequence[str] = ()

    def __init__(
        self, log: PartitionLog, data: memoryview, index: memoryview, swap_count: int
    ) -> None:
        self._log = log
        self._data = data
        self._index = index
        self._swap_count = swap_count
        self._name = f"the new segment of {log.topic}/{log.partition}"

    @property
    def size_bytes(self) -> int:
        return len(self._data)

    async def load(self) -> list[StagedSegment]:
        if self._log.swap_count != self._swap_count:
            raise InvalidRequestError(
                f"segments of {self._log.topic}/{self._log.partition} were replaced meanwhile"
            )
        try:
            return [await asyncio.to_thread(self._check)]
        except DamagedObjectError as error:
            raise InvalidRequestError(f"damaged new segment: {error}") from error

    def _check(self) -> StagedSegment:
        ends = segment_format.verify_checksum(self._name, self._data)
        newest_ms = self._read_index().max_timestamp_ms
        assert newest_ms is not None
        return _staged(self._name, self._data, *ends, newest_ms)

    async def read(self, _new: StagedSegment) -> tuple[memoryview, Index]:
        return self._data, self._read_index()

    def _read_index(self) -> Index:
        return index_format.decode(self._name, self._index, len(self._data))


class Staging:
    """The segments staged under a prefix for one partition.

    `checksums` are those of the segments that they replace, as the job has read them; empty if
    unknown. The job cannot compare them itself: until the swap begins, the owner may compact these
    segments, and the swap would bring back what that removed.
    """

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        log: PartitionLog,
        prefix: str,
        checksums: Sequence[int],
        *,
        index_interval_bytes: int,
    ) -> None:
        self._store = store
        self._index_interval_bytes = index_interval_bytes
        self._namespace = namespace
        self._log = log
        self._prefix = prefix
        self._checksums = checksums
        self._keys: list[str] = []

    @property
    def keys(self) -> Sequence[str]:
        """All staged objects, including indexes, which are ignored and built again."""
        return self._keys

    async def load(self) -> list[StagedSegment]:
        """Read and validate the staged segments; return them in order."""
        directory, partition = self._log.directory, self._log.partition
        segments = []
        async for chunk in self._store.list(self._prefix):
            for item in chunk:
                ref = object_keys.parse_staged(self._namespace, item.key)
                if ref is None or (ref.directory, ref.partition) != (directory, partition):
                    raise InvalidRequestError(
                        f"{item.key} is not a segment of {directory}/{partition}"
                    )
                self._keys.append(item.key)
                if not ref.is_index:
                    segments.append(await self._check(item.key, ref.base_offset))
        if not segments:
            raise InvalidRequestError(f"no staged segments under {self._prefix}")
        for before, after in pairwise(segments):
            if after.base_offset != before.next_offset:
                raise InvalidRequestError(
                    f"gap in staged segments: {before.key} ends at {before.next_offset},"
                    f" the next one is {after.key}"
                )
        if self._checksums:
            await self._check_replaced(segments)
        return segments

    async def _check_replaced(self, staged: Sequence[StagedSegment]) -> None:
        """Raise unless the segments to be replaced are those that the job has read."""
        log = self._log

        async def checksum(replaced: Segment) -> int:
            key = object_keys.segment_key(
                self._namespace, log.directory, log.partition, replaced.base_offset
            )
            return (await read_segment_footer(self._store, key)).checksum

        replaced = segments_to_replace(log, staged)
        if await map_limited(checksum, replaced, READS_MAX) != list(self._checksums):
            raise InvalidRequestError(
                f"segments of {log.topic}/{log.partition} have changed since the job has read them"
            )

    async def _check(self, key: str, base_offset: int) -> StagedSegment:
        data, segment = await self._read(key)
        if segment.header.base_offset != base_offset:
            raise InvalidRequestError(
                f"{key} begins at offset {segment.header.base_offset}, not {base_offset}"
            )
        # In a thread, because a segment may have a million batches.
        newest_ms = await asyncio.to_thread(
            lambda: max(batch.max_timestamp_ms for batch in segment.batches)
        )
        return _staged(key, data, segment.header, segment.footer, newest_ms)

    async def read(self, new: StagedSegment) -> tuple[memoryview, Index]:
        data, segment = await self._read(new.key)
        if segment.footer.checksum != new.checksum:
            raise InvalidRequestError(f"{new.key} changed during the swap")
        return data, await asyncio.to_thread(
            index_format.rebuild, segment.batches, self._index_interval_bytes
        )

    async def _read(self, key: str) -> tuple[memoryview, segment_format.Segment]:
        data = await self._store.get(key)
        try:
            return data, await asyncio.to_thread(segment_format.read, key, data)
        except DamagedObjectError as error:
            raise InvalidRequestError(f"damaged staged segment: {error}") from error


def _staged(
    key: str,
    data: memoryview,
    header: segment_format.Header,
    footer: segment_format.Footer,
    max_timestamp_ms: int,
) -> StagedSegment:
    return StagedSegment(
        key,
        header.base_offset,
        footer.last_offset + 1,
        len(data),
        footer.checksum,
        max_timestamp_ms,
    )


def segments_to_replace(log: PartitionLog, staged: Sequence[StagedSegment]) -> list[Segment]:
    """The segments of the log that the staged ones span."""
    start_offset, end_offset = staged[0].base_offset, staged[-1].next_offset
    first, last = log.segments.find(start_offset), log.segments.find(end_offset - 1)
    replaced = log.segments.some(first, last + 1 - first)
    if (
        not replaced
        or replaced[0].base_offset != start_offset
        or replaced[-1].next_offset != end_offset
    ):
        raise InvalidRequestError(
            f"staged offsets {start_offset} to {end_offset - 1} do not span whole segments of"
            f" {log.topic}/{log.partition}"
        )
    if replaced[0].next_offset <= log.start_offset:
        raise InvalidRequestError(
            f"staged offsets begin at {start_offset}, in a segment below the log start offset"
            f" {log.start_offset}, which is about to be deleted"
        )
    new = {each.base_offset for each in staged} - {each.base_offset for each in replaced}
    if new:
        raise InvalidRequestError(
            f"staged segments begin at {sorted(new)}, where no segment of"
            f" {log.topic}/{log.partition} begins"
        )
    return replaced
