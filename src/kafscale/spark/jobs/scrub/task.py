"""What a task of a scrub does: reads objects, proves them, and makes lost indexes anew if asked to.

The law: a broker goes on meanwhile. An object that is gone is passed over; one that looks wrong is
read again before it is told, because it may have been replaced between two requests.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.spark.jobs.scrub import index_repair
from kafscale.spark.jobs.scrub.findings import Finding, Kind
from kafscale.spark.jobs.scrub.listing import ListedSegment
from kafscale.spark.jobs.scrub.verify import ProvenSegment, prove_segment, prove_wal
from kafscale.spark.plan.offset_map import TopicPartition
from kafscale.spark.source.location import Location
from kafscale.storage.formats import index, object_keys
from kafscale.storage.formats.index import Index
from kafscale.storage.objects.blocking import BlockingObjectStore

GRACE_MS: Final = 60_000
"""How long an index may come later than its segment."""

READS_MAX: Final = 3
"""How often an object is read that looks wrong, before it is."""


class ScrubItem(msgspec.Struct, frozen=True):
    """What one task checks."""

    segments: tuple[ListedSegment, ...] = ()
    """Neighbours of one partition, or of several."""
    wal_keys: tuple[str, ...] = ()


class Checked(msgspec.Struct, frozen=True):
    """A segment that was looked at."""

    place: TopicPartition
    base_offset: int
    next_offset: int | None
    """None where it cannot be read."""
    record_count: int
    size_bytes: int


class ScrubResult(msgspec.Struct):
    """What a task tells."""

    checked: list[Checked] = []
    findings: list[Finding] = []
    wal_count: int = 0


def scrub_one(location: Location, now_ms: int, item: ScrubItem, *, repair: bool) -> ScrubResult:
    """Check some objects."""
    result = ScrubResult()
    with location.open() as store:
        task = _Task(store, now_ms, result, repair=repair)
        for segment in item.segments:
            task.check_segment(segment)
        for key in item.wal_keys:
            task.check_wal(location.namespace, key)
    return result


class _Task:
    def __init__(
        self, store: BlockingObjectStore, now_ms: int, result: ScrubResult, *, repair: bool
    ) -> None:
        self._store = store
        self._now_ms = now_ms
        self._result = result
        self._repair = repair
        self._reached: tuple[TopicPartition, int, int | None] | None = None
        """The place, the end and the greatest time of the log there, of the segment before."""

    # --- segments -----------------------------------------------------------------------------

    def check_segment(self, listed: ListedSegment) -> None:
        for reads_left in reversed(range(READS_MAX)):
            try:
                data = self._store.get(listed.key)
                proven = prove_segment(listed.key, listed.base_offset, data)
            except ObjectNotFoundError:
                return
            except DamagedObjectError as error:
                if not reads_left:
                    self._find(Kind.SEGMENT, listed.key, error.reason, listed.place[0])
                    self._note(listed, None)
                continue
            finding, entries = self._check_index(listed, proven)
            if finding is None or not reads_left:
                self._note(listed, proven)
                self._settle(listed, proven, finding, entries)
                return

    def _note(self, listed: ListedSegment, proven: ProvenSegment | None) -> None:
        self._result.checked.append(
            Checked(
                listed.place,
                listed.base_offset,
                proven.next_offset if proven else None,
                proven.record_count if proven else 0,
                listed.size_bytes,
            )
        )

    def _check_index(
        self, listed: ListedSegment, proven: ProvenSegment
    ) -> tuple[Finding | None, Index | None]:
        """What is wrong with the index of a segment, if anything is."""
        key, topic = listed.index_key, listed.place[0]
        try:
            entries = index.decode(key, self._store.get(key))
            index.verify(key, entries, proven.batches)
        except ObjectNotFoundError:
            if self._now_ms - listed.modified_ms < GRACE_MS:
                return None, None
            return Finding(Kind.MISSING_INDEX, key, topic=topic), None
        except DamagedObjectError as error:
            return Finding(Kind.INDEX, key, error.reason, topic), None
        return None, entries

    def _settle(
        self,
        listed: ListedSegment,
        proven: ProvenSegment,
        finding: Finding | None,
        entries: Index | None,
    ) -> None:
        """Tell a finding, after it was mended if that is wanted."""
        prior_ms = None
        if self._reached and self._reached[:2] == (listed.place, listed.base_offset):
            prior_ms = self._reached[2]
        if finding is not None:
            if self._repair:
                entries = self._remade(listed, proven, finding, prior_ms)
            is_repaired = self._repair and entries is not None
            self._result.findings.append(msgspec.structs.replace(finding, is_repaired=is_repaired))
        reached_ms = entries.log_max_timestamp_ms if entries else None
        self._reached = (listed.place, proven.next_offset, reached_ms)

    def _remade(
        self, listed: ListedSegment, proven: ProvenSegment, finding: Finding, prior_ms: int | None
    ) -> Index | None:
        """Make an index anew; None if it could not be put into its place."""
        key = listed.index_key
        is_missing = finding.kind is Kind.MISSING_INDEX
        damaged = b""
        if not is_missing:
            try:
                damaged = bytes(self._store.get(key))
            except ObjectNotFoundError:
                is_missing = True
        made = index_repair.remade(key, proven.batches, damaged, prior_ms)
        is_there = index_repair.install(
            self._store, listed.key, proven.checksum, key, made, is_missing=is_missing
        )
        return made if is_there else None

    # --- the WAL ------------------------------------------------------------------------------

    def check_wal(self, namespace: str, key: str) -> None:
        named = object_keys.parse_wal(namespace, key)
        assert named is not None
        reason = ""
        for _ in range(READS_MAX):
            try:
                data = self._store.get(key)
                # As long as the name is there, its file was not given to another object meanwhile.
                self._store.head(key)
                prove_wal(key, named, data)
            except ObjectNotFoundError:
                return
            except DamagedObjectError as error:
                reason = error.reason
            else:
                self._result.wal_count += 1
                return
        self._find(Kind.WAL, key, reason)

    def _find(self, kind: Kind, key: str, reason: str, topic: str = "") -> None:
        self._result.findings.append(Finding(kind, key, reason, topic))


def items_of(
    segments: Sequence[ListedSegment], wal: Sequence[tuple[str, int]], bytes_max: int
) -> list[ScrubItem]:
    """What each task checks: about so many bytes, neighbours together."""
    items: list[ScrubItem] = []
    waiting: list[ListedSegment] = []
    waiting_bytes = 0
    for segment in segments:
        if waiting and waiting_bytes + segment.size_bytes > bytes_max:
            items.append(ScrubItem(tuple(waiting)))
            waiting, waiting_bytes = [], 0
        waiting.append(segment)
        waiting_bytes += segment.size_bytes
    if waiting:
        items.append(ScrubItem(tuple(waiting)))
    keys: list[str] = []
    waiting_bytes = 0
    for key, size_bytes in wal:
        if keys and waiting_bytes + size_bytes > bytes_max:
            items.append(ScrubItem(wal_keys=tuple(keys)))
            keys, waiting_bytes = [], 0
        keys.append(key)
        waiting_bytes += size_bytes
    if keys:
        items.append(ScrubItem(wal_keys=tuple(keys)))
    return items
