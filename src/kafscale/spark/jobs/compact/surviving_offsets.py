"""The offsets that survive compaction, stored for the tasks that rewrite segments.

    {namespace}/_staging/compact-{run}-survivors/{topic}/{partition}/segment-….offsets

Each segment with survivors has one object: the offsets relative to the base offset as little-endian
32-bit integers, compressed with zstd and protected by a checksum, because a missing offset would
lose a record. For the same reason readers must know the number of offsets. Neither the driver nor a
task ever holds all keys of a log.

An expired tombstone is dropped only if it is the last record of its key. So the records that it
deletes are gone from all segments before the tombstone is, even if a run is killed between swaps.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import cramjam
import msgspec
import numpy as np
from numpy.typing import NDArray

from kafscale.errors import DamagedObjectError
from kafscale.records.batch_rewrite import SPAN_MAX
from kafscale.spark.jobs.compact.key_scan import INCOMPLETE, Rows, combine
from kafscale.spark.read.location import Location
from kafscale.storage.formats import index_section, object_keys
from kafscale.storage.objects.blocking import BlockingObjectStore

VERSION: Final = 1
SUFFIX: Final = ".offsets"


class TargetSegment(msgspec.Struct, frozen=True):
    """A segment to rewrite."""

    topic: str
    partition: int
    base_offset: int
    end_offset: int


class SurvivorStore(msgspec.Struct, frozen=True):
    """The segments of a run, and where their surviving offsets are stored."""

    location: Location
    run_id: str
    targets: Sequence[TargetSegment]
    """Ordered by the number of their partition, then by offset."""
    firsts: Sequence[int]
    """The index of the first target of each partition, followed by the number of targets."""

    def key(self, target: TargetSegment) -> str:
        return survivors_key(self.location.namespace, self.run_id, target)


def survivors_key(namespace: str, run_id: str, target: TargetSegment) -> str:
    directory = object_keys.staging_directory(namespace, f"compact-{run_id}-survivors")
    segment = object_keys.segment_key(directory, target.topic, target.partition, target.base_offset)
    return segment.removesuffix(object_keys.SEGMENT_SUFFIX) + SUFFIX


# --- second shuffle: by segment -------------------------------------------------------------------


def survivors_by_segment(
    store: SurvivorStore, shuffled: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes]]:
    """From all rows of some keys, return the surviving offsets by the number of their segment.

    Offsets outside all targets are dropped. An incomplete partition has a negative number.
    """
    rows = survivors(combine(data for _, data in shuffled))
    for partition in np.unique(rows["partition"]).tolist():
        offsets = np.sort(rows["latest"][rows["partition"] == partition])
        if offsets[0] == INCOMPLETE:
            yield -1 - partition, b""
        first, end = store.firsts[partition : partition + 2]
        for index, own in _split_by_target(store.targets[first:end], offsets):
            yield first + index, own.tobytes()


def survivors(rows: Rows) -> Rows:
    """Return the latest record of each key, unless it is a tombstone that may be dropped."""
    is_only = rows["oldest"] == rows["latest"]
    kept: Rows = rows[~(rows["is_expired"] & is_only)]
    return kept


def _split_by_target(
    targets: Sequence[TargetSegment], offsets: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Split ascending offsets by the targets that contain them."""
    bounds = [bound for target in targets for bound in (target.base_offset, target.end_offset)]
    # The insertion point of an offset between a base and its end is odd.
    points = np.searchsorted(bounds, offsets, "right")
    for point in np.unique(points[points % 2 == 1]).tolist():
        yield point // 2, offsets[points == point]


# --- objects --------------------------------------------------------------------------------------


def store_survivors(
    store: SurvivorStore, shuffled: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[int, int]]:
    """Store all surviving offsets of some segments; return the number of offsets of each."""
    by_segment: dict[int, list[bytes]] = defaultdict(list)
    for segment, data in shuffled:
        by_segment[segment].append(data)
    with store.location.open() as objects:
        for segment, chunks in by_segment.items():
            offsets = np.sort(np.frombuffer(b"".join(chunks), np.int64))
            if segment >= 0:
                target = store.targets[segment]
                objects.put(store.key(target), [encode(target, offsets)], create=False)
            yield segment, offsets.size


def encode(target: TargetSegment, offsets: NDArray[np.int64]) -> bytes:
    """Encode ascending offsets of a segment."""
    assert target.end_offset - target.base_offset <= SPAN_MAX
    assert target.base_offset <= offsets[0] <= offsets[-1] < target.end_offset
    deltas = (offsets - target.base_offset).astype("<u4")
    return index_section.encode_section(VERSION, bytes(cramjam.zstd.compress(deltas.tobytes())))


def load(
    store: BlockingObjectStore, key: str, target: TargetSegment, count: int
) -> NDArray[np.int64]:
    """Return the surviving offsets of a segment; raise unless there are `count` of them."""
    if not count:
        return np.empty(0, np.int64)
    sealed = index_section.decode_section(key, VERSION, store.get(key))
    deltas = np.frombuffer(bytes(cramjam.zstd.decompress(sealed)), "<u4").astype(np.int64)
    if deltas.size != count:
        raise DamagedObjectError(key, f"it has {deltas.size} offsets, expected {count}")
    return deltas + target.base_offset
