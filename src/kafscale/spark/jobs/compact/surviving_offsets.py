"""Which records survive compaction: offsets, kept aside for the tasks that rewrite segments.

    {namespace}/_staging/compact-{run}-survivors/{topic}/{partition}/segment-….offsets

One object for each segment that something survives of: the offsets, from the segment's base on, as
little-endian numbers of 32 bits, compressed with zstd and sealed with a checksum, because an offset
that went missing would cost a record. For the same reason whoever reads one must know how many
offsets there are. Neither the driver nor any task so ever holds all keys of a log.

A mark of deletion goes once its time has come, but only if it is all that is left of its key. What
it has deleted is gone for good before it goes itself, therefore, whatever happens between swaps.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import cramjam
import msgspec
import numpy as np
from numpy.typing import NDArray

from kafscale.errors import DamagedObjectError
from kafscale.spark.jobs.compact.latest_by_key import INCOMPLETE, Rows, arrived
from kafscale.spark.jobs.shared.batch_rewrite import SPAN_MAX
from kafscale.spark.source.location import Location
from kafscale.storage.formats import index_section, object_keys
from kafscale.storage.objects.blocking import BlockingObjectStore

VERSION: Final = 1
SUFFIX: Final = ".offsets"


class Target(msgspec.Struct, frozen=True):
    """A segment that is to be rewritten."""

    topic: str
    partition: int
    base_offset: int
    end_offset: int


class SurvivorsWork(msgspec.Struct, frozen=True):
    """What all tasks know that find the segments of survivors and keep them aside."""

    location: Location
    run: str
    targets: Sequence[Target]
    """By partition, in the order of their numbers, and ascending."""
    firsts: Sequence[int]
    """The index of the first target of each partition, and how many targets there are."""

    def key(self, target: Target) -> str:
        return survivors_key(self.location.namespace, self.run, target)


def survivors_key(namespace: str, run: str, target: Target) -> str:
    area = f"{namespace}/{object_keys.STAGING_DIRECTORY}/compact-{run}-survivors"
    segment = object_keys.segment_key(area, target.topic, target.partition, target.base_offset)
    return segment.removesuffix(object_keys.SEGMENT_SUFFIX) + SUFFIX


# --- finding their segments -----------------------------------------------------------------------


def placed(
    work: SurvivorsWork, shared_out: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes]]:
    """Of all rows of some keys, the offsets that survive, by segment; those in none are left out.

    A partition that could not be read completely is told as a negative segment.
    """
    rows = surviving(arrived(data for _, data in shared_out))
    for place in np.unique(rows["place"]).tolist():
        offsets = np.sort(rows["newest"][rows["place"] == place])
        if offsets[0] == INCOMPLETE:
            yield -1 - place, b""
        first, end = work.firsts[place : place + 2]
        for index, own in _by_target(work.targets[first:end], offsets):
            yield first + index, own.tobytes()


def surviving(rows: Rows) -> Rows:
    """The newest record of each key, unless it is a mark of deletion that may go."""
    is_alone = rows["oldest"] == rows["newest"]
    left: Rows = rows[~(rows["is_expired"] & is_alone)]
    return left


def _by_target(
    targets: Sequence[Target], offsets: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Ascending offsets, by the targets that hold them."""
    bounds = [bound for target in targets for bound in (target.base_offset, target.end_offset)]
    # Between a base and its end, the insertion point is odd.
    found = np.searchsorted(bounds, offsets, "right")
    for point in np.unique(found[found % 2 == 1]).tolist():
        yield point // 2, offsets[found == point]


# --- keeping aside --------------------------------------------------------------------------------


def kept_aside(
    work: SurvivorsWork, shared_out: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[int, int]]:
    """Keep the offsets of some segments aside, all of each; how many each has."""
    gathered: dict[int, list[bytes]] = defaultdict(list)
    for segment, data in shared_out:
        gathered[segment].append(data)
    with work.location.open() as store:
        for segment, several in gathered.items():
            offsets = np.sort(np.frombuffer(b"".join(several), np.int64))
            if segment >= 0:
                target = work.targets[segment]
                store.put(work.key(target), [encode(target, offsets)], create=False)
            yield segment, offsets.size


def encode(target: Target, offsets: NDArray[np.int64]) -> bytes:
    """Ascending offsets of a segment, as they are kept aside."""
    assert target.end_offset - target.base_offset <= SPAN_MAX
    assert target.base_offset <= offsets[0] <= offsets[-1] < target.end_offset
    deltas = (offsets - target.base_offset).astype("<u4")
    return index_section.seal(VERSION, bytes(cramjam.zstd.compress(deltas.tobytes())))


def load(store: BlockingObjectStore, key: str, target: Target, count: int) -> NDArray[np.int64]:
    """The offsets that survive in a segment, of which there must be so many."""
    if not count:
        return np.empty(0, np.int64)
    sealed = index_section.unseal(key, VERSION, store.get(key))
    deltas = np.frombuffer(bytes(cramjam.zstd.decompress(sealed)), "<u4").astype(np.int64)
    if deltas.size != count:
        raise DamagedObjectError(key, f"it has {deltas.size} offsets instead of {count}")
    return deltas + target.base_offset
