"""Validation of the segments that a job has staged for a partition.

Invariants of staged segments: each is undamaged and begins at the offset in its key; they are
contiguous; together they span exactly a range of whole segments of the log, none of them below the
log start offset; each begins where one of those begins. So no key comes into use again that was
deleted before: see `swap`. Violations raise `InvalidRequestError`.
"""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from kafscale.errors import DamagedObjectError, InvalidRequestError
from kafscale.storage.formats import object_keys
from kafscale.storage.formats import segment as segment_format
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.objects.store import ObjectStore


class StagedSegment(msgspec.Struct, frozen=True, gc=False):
    """A segment to be swapped in."""

    key: str
    base_offset: int
    next_offset: int
    size_bytes: int
    checksum: int
    max_timestamp_ms: int


class Staging:
    """The segments staged under a prefix for one partition."""

    def __init__(self, store: ObjectStore, namespace: str, log: PartitionLog, prefix: str) -> None:
        self._store = store
        self._namespace = namespace
        self._log = log
        self._prefix = prefix
        self.keys: list[str] = []
        """All staged objects, including indexes, which are ignored and built again."""

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
                self.keys.append(item.key)
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
        return segments

    async def _check(self, key: str, base_offset: int) -> StagedSegment:
        data, segment = await self.read(key)
        if segment.header.base_offset != base_offset:
            raise InvalidRequestError(
                f"{key} begins at offset {segment.header.base_offset}, not {base_offset}"
            )
        return StagedSegment(
            key,
            base_offset,
            segment.footer.last_offset + 1,
            len(data),
            segment.footer.checksum,
            max(batch.max_timestamp_ms for batch in segment.batches),
        )

    async def read(self, key: str) -> tuple[memoryview, segment_format.Segment]:
        """Read an undamaged staged segment."""
        data = await self._store.get(key)
        try:
            return data, await asyncio.to_thread(segment_format.read, key, data)
        except DamagedObjectError as error:
            raise InvalidRequestError(f"damaged staged segment: {error}") from error

    def segments_to_replace(self, staged: Sequence[StagedSegment]) -> list[Segment]:
        """The segments of the log that the staged ones span."""
        start_offset, end_offset = staged[0].base_offset, staged[-1].next_offset
        replaced = [
            segment
            for segment in self._log.segments
            if start_offset <= segment.base_offset and segment.next_offset <= end_offset
        ]
        if (
            not replaced
            or replaced[0].base_offset != start_offset
            or replaced[-1].next_offset != end_offset
        ):
            raise InvalidRequestError(
                f"staged offsets {start_offset} to {end_offset - 1} do not span whole segments of"
                f" {self._log.topic}/{self._log.partition}"
            )
        if replaced[0].next_offset <= self._log.start_offset:
            raise InvalidRequestError(
                f"staged offsets begin at {start_offset}, in a segment below the log start offset"
                f" {self._log.start_offset}, which is about to be deleted"
            )
        new = {each.base_offset for each in staged} - {each.base_offset for each in replaced}
        if new:
            raise InvalidRequestError(
                f"staged segments begin at {sorted(new)}, where no segment of"
                f" {self._log.topic}/{self._log.partition} begins"
            )
        return replaced
