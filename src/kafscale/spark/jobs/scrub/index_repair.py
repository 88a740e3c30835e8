"""Rebuilds indexes while a broker may be about to replace the same segment.

Invariants: a missing index is created only if it does not exist; one that a broker has written in
the meantime is as good. A damaged index is overwritten only if its segment is the one that was
read, before and after the write. If it is not after the write, the owner has swapped the segment,
and the new index is deleted again: readers rebuild a missing index, while the index of another
segment would mislead them.

The producer state, the transactions and the leader epochs in a damaged index are kept if they can
be read; each has its own checksum. They are dropped from an undamaged index that does not fit its
segment: it belongs to another segment. The broker that opens the log then rebuilds them from the
batches.

Transactions that cannot be read are rebuilt, if it is known what is open before the segment. If it
is not, the producer state is dropped as well: without it, an index says nothing about transactions,
while one with it would say that there are none.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from struct import Struct
from typing import Final

from kafscale.errors import DamagedObjectError, ObjectExistsError, ObjectNotFoundError
from kafscale.records import BatchView
from kafscale.spark.jobs.scrub.transactions import rebuild_section
from kafscale.storage.bucket import read_segment_footer
from kafscale.storage.formats import index
from kafscale.storage.formats.index import Index
from kafscale.storage.formats.index_section import (
    EPOCHS_SECTION,
    PRODUCERS_SECTION,
    TRANSACTIONS_SECTION,
)
from kafscale.storage.log.state.leader_epochs import LeaderEpochs
from kafscale.storage.log.state.producer_state import Producers
from kafscale.storage.log.state.transactions import TransactionSection
from kafscale.storage.objects.blocking import BlockingObjectStore

INTERVAL_BYTES: Final = 4096

_COUNT: Final = Struct(">6xi")
_SECTION: Final = Struct(">4sI")


def rebuild_index(
    key: str,
    batches: Sequence[BatchView],
    damaged: bytes,
    prior_max_timestamp_ms: int | None,
    before: TransactionSection | None,
) -> Index:
    """Rebuild the index of a segment, with the readable sections of a damaged index.

    `before` is what the index of the segment before says about transactions, if it is known.
    """
    rebuilt = index.rebuild(batches, INTERVAL_BYTES, prior_max_timestamp_ms=prior_max_timestamp_ms)
    sections = rebuilt.sections
    if not _is_decodable(key, damaged):
        sections.update(_readable_sections(key, damaged))
    if TRANSACTIONS_SECTION not in sections:
        if before is None:
            sections.pop(PRODUCERS_SECTION, None)
        elif not (section := rebuild_section(before, batches)).is_empty:
            sections[TRANSACTIONS_SECTION] = section.encode()
    return rebuilt


def _is_decodable(key: str, data: bytes) -> bool:
    with suppress(DamagedObjectError):
        index.decode(key, data)
        return True
    return False


def install_index(
    store: BlockingObjectStore,
    segment_key: str,
    checksum: int,
    key: str,
    rebuilt: Index,
    *,
    is_missing: bool,
) -> bool:
    """Write an index for the segment with this checksum; return whether it is in place."""
    data = rebuilt.encode()
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
        return store.run(lambda objects: read_segment_footer(objects, segment_key)).checksum
    except (ObjectNotFoundError, DamagedObjectError):
        return None


def _readable_sections(key: str, damaged: bytes) -> Mapping[bytes, bytes]:
    """Return the sections whose own checksums are correct."""
    sections: dict[bytes, bytes] = {}
    if len(damaged) < index.HEADER_BYTES:
        return sections
    position = index.HEADER_BYTES + max(_COUNT.unpack_from(damaged)[0], 0) * index.ENTRY_BYTES
    while position + _SECTION.size <= len(damaged):
        magic, length = _SECTION.unpack_from(damaged, position)
        start = position + _SECTION.size
        position = start + length
        content = damaged[start:position]
        if len(content) == length and _is_readable(key, magic, content):
            sections[magic] = content
    return sections


def _is_readable(key: str, magic: bytes, content: bytes) -> bool:
    """Whether a section has a known type and can be decoded."""
    try:
        if magic == PRODUCERS_SECTION:
            Producers.decode(key, content)
        elif magic == EPOCHS_SECTION:
            LeaderEpochs.decode(key, content)
        elif magic == TRANSACTIONS_SECTION:
            TransactionSection.decode(key, content)
    except DamagedObjectError:
        return False
    return magic in {PRODUCERS_SECTION, EPOCHS_SECTION, TRANSACTIONS_SECTION}
