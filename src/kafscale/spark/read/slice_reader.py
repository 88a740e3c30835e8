"""Reads the batches of a slice, even if they have moved since planning.

Invariants: every batch that holds an offset of the slice is yielded once, in order, whole, with a
verified checksum; the first may begin before the slice, and the last may end after it. Each batch
must continue at the next expected offset. If an object is missing, has changed or does not hold the
planned offsets, because the log was rolled, merged or compacted meanwhile, the reader lists the
bucket again and continues at the same offset.

Offsets that are still missing were lost: deleted by retention, or with their topic. That is an
error if `fail_on_data_loss` is set. A batch that stays damaged is always an error.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from struct import Struct
from typing import Final, NamedTuple

from kafscale.errors import (
    DamagedObjectError,
    ObjectNotFoundError,
    OffsetOutOfRangeError,
    RecordsError,
)
from kafscale.observability.logging import get_logger
from kafscale.records import BatchView, split
from kafscale.records.batch import LENGTH_OVERHEAD_BYTES, LENGTH_POSITION
from kafscale.spark.plan.offset_map import Extent
from kafscale.spark.plan.task_planner import Slice
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.storage.bucket import read_index
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.blocking import BlockingObjectStore

logger = get_logger(__name__)

RELISTS_MAX: Final = 5
"""How often in a row the bucket is listed again for one offset."""

RELIST_PAUSE_SECONDS: Final = 0.2

_LENGTH: Final = Struct(">i")

CHUNK_BYTES: Final = 8 * 1024 * 1024
CHUNKS_AHEAD: Final = 2
REQUESTS_AHEAD: Final = 16
INDEXED_BYTES_MIN: Final = 1024 * 1024
"""Below this size, reading the whole object is cheaper than reading its index first."""


class Chunk(NamedTuple):
    """Some bytes of an extent, and whether they are its last ones."""

    extent: Extent
    data: memoryview
    is_last: bool


class Prefetcher:
    """Reads the bytes of extents ahead of the decoder, for one task.

    Chunks are yielded in the order of the extents. The number of concurrent requests and of
    prefetched bytes is bounded. The error of a request is raised when its chunk is due.
    """

    def __init__(self, store: BlockingObjectStore, namespace: str) -> None:
        self._store = store
        self._namespace = namespace

    def chunks(self, extents: Iterable[Extent]) -> Iterator[Chunk]:
        """Yield the bytes of the extents, from the batch that holds their first offset."""
        requests = self._requests(extents)
        ahead: deque[tuple[Extent, int, bool, Future[memoryview]]] = deque()
        ahead_bytes = 0
        try:
            while True:
                while not ahead or (
                    len(ahead) < REQUESTS_AHEAD and ahead_bytes < CHUNKS_AHEAD * CHUNK_BYTES
                ):
                    request = next(requests, None)
                    if request is None:
                        break
                    extent, start, stop, is_last = request
                    future = self._store.submit_get_range(extent.key, start, stop)
                    ahead.append((extent, stop - start, is_last, future))
                    ahead_bytes += stop - start
                if not ahead:
                    return
                extent, length, is_last, future = ahead.popleft()
                data = future.result()
                ahead_bytes -= length
                yield Chunk(extent, data, is_last)
        finally:
            for *_, future in ahead:
                future.cancel()

    def _requests(self, extents: Iterable[Extent]) -> Iterator[tuple[Extent, int, int, bool]]:
        for extent in extents:
            start, stop = self._byte_range(extent)
            while start < stop:
                end = min(start + CHUNK_BYTES, stop)
                yield extent, start, end, end == stop
                start = end

    def _byte_range(self, extent: Extent) -> tuple[int, int]:
        """Return the byte range to read: the whole extent, or less if an index allows it."""
        start, stop = extent.position, extent.position + extent.length
        parsed = object_keys.parse_segment(self._namespace, extent.key)
        if parsed is None or extent.length < INDEXED_BYTES_MIN:
            return start, stop
        is_within = extent.start_offset > parsed.base_offset
        if not (is_within or extent.is_cut):
            return start, stop
        entries = self._store.run(
            lambda objects: read_index(objects, extent.key, extent.segment_bytes)
        )
        if entries is None:
            return start, stop
        if is_within:
            start = entries.positions[entries.find(extent.start_offset)]
        after = entries.find(extent.end_offset - 1) + 1
        if extent.is_cut and after < len(entries):
            stop = entries.positions[after]
        return start, stop


class BatchGroup(NamedTuple):
    """Consecutive batches of one object, in one buffer."""

    key: str
    batches: list[BatchView]


class SliceReader:
    """Reads the slices of a task."""

    def __init__(
        self,
        store: BlockingObjectStore,
        namespace: str,
        *,
        fail_on_data_loss: bool = True,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._fail_on_data_loss = fail_on_data_loss
        self._sleep = sleep
        self._prefetcher = Prefetcher(store, namespace)

    def read(self, part: Slice) -> Iterator[BatchGroup]:
        extents: Sequence[Extent] = part.extents
        next_offset = part.start_offset
        relists = 0
        while next_offset < part.end_offset:
            problem: ObjectNotFoundError | DamagedObjectError | None = None
            try:
                for group in self._read_extents(extents, next_offset, part.end_offset):
                    yield group
                    next_offset = group.batches[-1].next_offset
                    relists = 0
            except (ObjectNotFoundError, DamagedObjectError) as error:
                problem = error
            if next_offset >= part.end_offset:
                return
            if relists == RELISTS_MAX and problem is not None:
                raise problem
            if relists:
                self._sleep(RELIST_PAUSE_SECONDS)
            is_missing = relists == RELISTS_MAX
            resumed, extents = self._relist(part, next_offset, is_missing=is_missing)
            relists = relists + 1 if resumed == next_offset else 0
            next_offset = resumed

    def _relist(
        self, part: Slice, next_offset: int, *, is_missing: bool
    ) -> tuple[int, Sequence[Extent]]:
        """List the bucket again; return the offset to continue at, and its extents.

        `is_missing` means that the object which should hold the offset exists, but after several
        attempts still lacks it.
        """
        offset_map = list_bucket(self._store, self._namespace, [part.topic])
        partition = offset_map.partitions.get((part.topic, part.partition))
        extents = partition.extents_between(next_offset, part.end_offset) if partition else []
        if extents and extents[0].start_offset == next_offset:
            if not is_missing:
                return next_offset, extents
            extents = extents[1:]
        resumed = extents[0].start_offset if extents else part.end_offset
        self._report_loss(part, next_offset, resumed)
        return resumed, extents

    def _report_loss(self, part: Slice, from_offset: int, to_offset: int) -> None:
        text = (
            f"offsets {from_offset} to {to_offset - 1} of {part.topic}/{part.partition} no longer "
            "exist: they were deleted by retention, or the topic was deleted"
        )
        if self._fail_on_data_loss:
            raise OffsetOutOfRangeError(
                f"{text}; set failOnDataLoss=false to continue without them"
            )
        logger.warning(
            "offsets skipped",
            topic=part.topic,
            partition=part.partition,
            from_offset=from_offset,
            to_offset=to_offset,
        )

    # --- reading planned extents --------------------------------------------------------------

    def _read_extents(
        self, extents: Sequence[Extent], next_offset: int, end_offset: int
    ) -> Iterator[BatchGroup]:
        """Yield the batches of planned extents; stop early where the plan is outdated."""
        rest = b""
        for chunk in self._prefetcher.chunks(extents):
            key = chunk.extent.key
            try:
                first, position, rest = _complete(rest, chunk)
                several = split(chunk.data[position:], partial_ok=True)
                rest = rest or bytes(chunk.data[position + sum(map(len, several)) :])
                if rest and chunk.is_last:
                    raise DamagedObjectError(key, f"{len(rest)} bytes follow its last batch")
                for batches in (first, several):
                    due = _contiguous(batches, next_offset, end_offset)
                    if due:
                        for batch in due:
                            batch.verify_checksum()
                        yield BatchGroup(key, due)
                        next_offset = due[-1].next_offset
                        if next_offset >= end_offset:
                            return
            except RecordsError as error:
                raise DamagedObjectError(key, str(error)) from error
            if chunk.is_last and next_offset < chunk.extent.end_offset:
                return  # The object ends before the planned offset.


def _contiguous(batches: Sequence[BatchView], next_offset: int, end_offset: int) -> list[BatchView]:
    """Return the contiguous batches from the one that holds `next_offset` on."""
    due: list[BatchView] = []
    for batch in batches:
        header = batch.header()
        after = header.base_offset + header.last_offset_delta + 1
        if after <= next_offset:
            if due:
                break
            continue
        is_next = (
            header.base_offset <= next_offset if not due else header.base_offset == next_offset
        )
        if not is_next or header.base_offset >= end_offset:
            break
        due.append(batch)
        next_offset = after
    return due


def _complete(rest: bytes, chunk: Chunk) -> tuple[list[BatchView], int, bytes]:
    """Return the batch that began in the chunk before, the next position, and a partial batch."""
    if not rest:
        return [], 0, b""
    data = chunk.data
    missing = max(LENGTH_OVERHEAD_BYTES - len(rest), 0)
    head = rest + bytes(data[:missing])
    if len(head) < LENGTH_OVERHEAD_BYTES:
        return [], len(data), head
    (length,) = _LENGTH.unpack_from(head, LENGTH_POSITION)
    consumed = LENGTH_OVERHEAD_BYTES + length - len(rest)
    whole = rest + bytes(data[:consumed])
    if consumed > len(data):
        return [], len(data), whole
    return [BatchView(whole)], consumed, b""
