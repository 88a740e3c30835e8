"""Indexes made anew beside a broker that may be about to replace the same segment.

The laws: an index that is missing is created, and whoever was faster has written as good a one. One
that is damaged is written over only if its segment is the one that was read, before and after; if
it is not so after, an owner has swapped the segment meanwhile, and what was written is taken away
again: readers make it anew, while an index of another segment would mislead them.

What a log knew at the end of a segment, its producers and leader epochs, is kept if it can be read:
each has a checksum of its own. Not so of an index that is whole, and does not fit: it is of another
segment, and knows what was known elsewhere. Whoever opens the log learns it from the batches then.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from struct import Struct
from typing import Final

from kafscale.errors import DamagedObjectError, ObjectExistsError, ObjectNotFoundError
from kafscale.records import BatchView
from kafscale.storage.formats import index, segment
from kafscale.storage.formats.index import Index
from kafscale.storage.log.state.leader_epochs import LeaderEpochs
from kafscale.storage.log.state.producer_state import Producers
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.segments.segment_writer import EPOCHS_SECTION, PRODUCERS_SECTION

INTERVAL_BYTES: Final = 4096

_COUNT: Final = Struct(">6xi")
_SECTION: Final = Struct(">4sI")


def remade(
    key: str, batches: Sequence[BatchView], damaged: bytes, prior_max_timestamp_ms: int | None
) -> Index:
    """The index of a segment, with what can be saved of a damaged one; that may be empty."""
    made = index.rebuild(batches, INTERVAL_BYTES, prior_max_timestamp_ms=prior_max_timestamp_ms)
    with suppress(DamagedObjectError):
        index.decode(key, damaged)
        return made
    made.sections.update(_sections(key, damaged))
    return made


def install(
    store: BlockingObjectStore,
    segment_key: str,
    checksum: int,
    key: str,
    made: Index,
    *,
    is_missing: bool,
) -> bool:
    """Write an index for the segment that has this checksum; whether it is there now."""
    data = made.encode()
    if is_missing:
        try:
            store.put(key, [data], create=True)
        except ObjectExistsError:
            return True
    else:
        if _checksum(store, segment_key) != checksum:
            return False
        store.put(key, [data], create=False)
    if _checksum(store, segment_key) == checksum:
        return True
    try:
        if bytes(store.get(key)) == data:
            store.delete([key])
    except ObjectNotFoundError:
        return False
    return False


def _checksum(store: BlockingObjectStore, segment_key: str) -> int | None:
    try:
        suffix = store.get_suffix(segment_key, segment.FOOTER_BYTES)
        return segment.decode_footer(segment_key, suffix).checksum
    except (ObjectNotFoundError, DamagedObjectError):
        return None


def _sections(key: str, damaged: bytes) -> Mapping[bytes, bytes]:
    """The sections that can be read, each of which has a checksum of its own."""
    found: dict[bytes, bytes] = {}
    if len(damaged) < index.HEADER_BYTES:
        return found
    position = index.HEADER_BYTES + max(_COUNT.unpack_from(damaged)[0], 0) * index.ENTRY_BYTES
    while position + _SECTION.size <= len(damaged):
        magic, length = _SECTION.unpack_from(damaged, position)
        start = position + _SECTION.size
        position = start + length
        content = damaged[start:position]
        if len(content) == length and _is_whole(key, magic, content):
            found[magic] = content
    return found


def _is_whole(key: str, magic: bytes, content: bytes) -> bool:
    """Whether a section is one that we know, and can be read."""
    try:
        if magic == PRODUCERS_SECTION:
            Producers.decode(key, content)
        elif magic == EPOCHS_SECTION:
            LeaderEpochs.decode(key, content)
    except DamagedObjectError:
        return False
    return magic in {PRODUCERS_SECTION, EPOCHS_SECTION}
