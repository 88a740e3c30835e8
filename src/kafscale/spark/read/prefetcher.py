"""Reads the bytes of extents ahead of the decoder.

Invariants: blocks are yielded in the order of the extents; the number of concurrent requests and of
prefetched bytes is bounded; the error of a request is raised when its block is due.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Final, NamedTuple

from kafscale.spark.plan.offset_map import Extent
from kafscale.storage.bucket import read_index
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.blocking import BlockingObjectStore

BLOCK_BYTES: Final = 8 * 1024 * 1024
BLOCKS_AHEAD: Final = 2
REQUESTS_AHEAD: Final = 16
INDEXED_BYTES_MIN: Final = 1024 * 1024
"""Below this size, reading the whole object is cheaper than reading its index first."""


class Block(NamedTuple):
    """Some bytes of an extent, and whether they are its last ones."""

    extent: Extent
    data: memoryview
    is_last: bool


class Prefetcher:
    """Prefetches blocks for one task."""

    def __init__(self, store: BlockingObjectStore, namespace: str) -> None:
        self._store = store
        self._namespace = namespace

    def blocks(self, extents: Iterable[Extent]) -> Iterator[Block]:
        """Yield the bytes of the extents, from the batch that holds their first offset."""
        requests = self._requests(extents)
        ahead: deque[tuple[Extent, int, bool, Future[memoryview]]] = deque()
        ahead_bytes = 0
        try:
            while True:
                while not ahead or (
                    len(ahead) < REQUESTS_AHEAD and ahead_bytes < BLOCKS_AHEAD * BLOCK_BYTES
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
                yield Block(extent, data, is_last)
        finally:
            for *_, future in ahead:
                future.cancel()

    def _requests(self, extents: Iterable[Extent]) -> Iterator[tuple[Extent, int, int, bool]]:
        for extent in extents:
            start, stop = self._byte_range(extent)
            while start < stop:
                end = min(start + BLOCK_BYTES, stop)
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
        entries = self._store.run(lambda objects: read_index(objects, extent.key))
        if entries is None:
            return start, stop
        if is_within:
            start = entries.positions[entries.find(extent.start_offset)]
        after = entries.find(extent.end_offset - 1) + 1
        if extent.is_cut and after < len(entries):
            stop = entries.positions[after]
        return start, stop
