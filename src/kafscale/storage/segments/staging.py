"""What jobs have made for a partition: segments that wait to be swapped in, looked at and checked.

The law: nothing gets beyond here that would not fit. Each staged segment is whole, and begins at
the offset in its name; they follow each other without a gap; and together they span exactly a run
of whole segments of the log. What is wrong is said in an `InvalidRequestError`.
"""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from kafscale.errors import DamagedObjectError, InvalidRequestError
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.objects.store import ObjectStore


class StagedSegment(msgspec.Struct, frozen=True, gc=False):
    """A segment that waits to be swapped in."""

    key: str
    base_offset: int
    next_offset: int
    size_bytes: int
    checksum: int
    max_timestamp_ms: int


class Staging:
    """What is staged under a prefix for one partition."""

    def __init__(
        self, store: ObjectStore, namespace: str, partition: PartitionLog, prefix: str
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._partition = partition
        self._prefix = prefix
        self.keys: list[str] = []
        """All that is staged; indexes are not used, because they are made anew."""

    async def look(self) -> list[StagedSegment]:
        """The staged segments, in order; each is read once, because it is proven."""
        topic, number = self._partition.topic, self._partition.partition
        segments = []
        async for chunk in self._store.list(self._prefix):
            for item in chunk:
                place = object_keys.parse_staged(self._namespace, item.key)
                if place is None or (place.topic, place.partition) != (topic, number):
                    raise InvalidRequestError(f"{item.key} is no segment of {topic}/{number}")
                self.keys.append(item.key)
                if not place.is_index:
                    segments.append(await self._check(item.key, place.base_offset))
        if not segments:
            raise InvalidRequestError(f"there are no segments in {self._prefix}")
        for before, after in pairwise(segments):
            if after.base_offset != before.next_offset:
                raise InvalidRequestError(
                    f"{before.key} ends at {before.next_offset}, and {after.key} follows"
                )
        return segments

    async def _check(self, key: str, base_offset: int) -> StagedSegment:
        data, found = await self.read(key)
        if found.header.base_offset != base_offset:
            raise InvalidRequestError(f"{key} begins at offset {found.header.base_offset}")
        return StagedSegment(
            key,
            base_offset,
            found.footer.last_offset + 1,
            len(data),
            found.footer.checksum,
            max(batch.max_timestamp_ms for batch in found.batches),
        )

    async def read(self, key: str) -> tuple[memoryview, segment.Segment]:
        """A staged segment, which is whole."""
        data = await self._store.get(key)
        try:
            return data, await asyncio.to_thread(segment.read, key, data)
        except DamagedObjectError as error:
            raise InvalidRequestError(f"a staged segment is damaged: {error}") from error

    def replaced(self, staged: Sequence[StagedSegment]) -> list[Segment]:
        """The segments whose place the staged ones are to take."""
        start_offset, end_offset = staged[0].base_offset, staged[-1].next_offset
        replaced = [
            found
            for found in self._partition.segments
            if start_offset <= found.base_offset and found.next_offset <= end_offset
        ]
        if (
            not replaced
            or replaced[0].base_offset != start_offset
            or replaced[-1].next_offset != end_offset
        ):
            raise InvalidRequestError(
                f"no run of segments of {self._partition.topic}/{self._partition.partition}"
                f" spans the offsets {start_offset} to {end_offset - 1}"
            )
        return replaced
