"""The task of a scrub: reads objects, verifies them, and rebuilds indexes if requested.

In addition to the checks of `storage.formats.verification`, the task decodes the records of
segments and WAL objects as any reader would, and checks that an index with a section about
transactions lists all that were aborted in its segment: readers would return their records.

Brokers keep working while a scrub runs: an object that no longer exists is skipped, and one that
looks damaged is read again before it is reported, because it may have been replaced between two
requests.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

import msgspec
import numpy as np

from kafscale.errors import DamagedObjectError, ObjectNotFoundError, RecordsError
from kafscale.records import BatchView, iterate
from kafscale.spark.jobs.scrub import index_repair
from kafscale.spark.jobs.scrub.listing import Finding, FindingKind, ListedSegment
from kafscale.spark.jobs.scrub.transactions import known_section, missing_aborted, rebuild_section
from kafscale.spark.jobs.shared.record_scan import chunk_batches, scan
from kafscale.spark.read.location import Location
from kafscale.storage.bucket import read_segment_footer
from kafscale.storage.formats import object_keys
from kafscale.storage.formats.index import Index
from kafscale.storage.formats.segment import Segment
from kafscale.storage.formats.verification import verify_index, verify_segment, verify_wal_object
from kafscale.storage.log.state.transactions import TransactionSection
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.store import ObjectInfo
from kafscale.text.topic_partition import TopicPartition

Listed = TypeVar("Listed", ListedSegment, ObjectInfo)

GRACE_MS: Final = 60_000
"""How much later than a segment its index may be written."""

READS_MAX: Final = 3
"""How often an object must look damaged before it is reported."""


def check_records(key: str, batches: Sequence[BatchView]) -> None:
    """Decode all records of batches; raise `DamagedObjectError` if that fails."""
    for batch in batches:
        if batch.is_control:
            try:
                for _ in iterate(batch):
                    pass
            except RecordsError as error:
                reason = f"the batch at offset {batch.base_offset}: {error}"
                raise DamagedObjectError(key, reason) from error
    for chunk in chunk_batches(batches):
        offsets = scan(key, chunk).offsets
        if (np.diff(offsets) <= 0).any():
            raise DamagedObjectError(key, "the offsets of its records do not ascend")


def check_transactions(key: str, entries: Index, batches: Sequence[BatchView]) -> None:
    """Raise `DamagedObjectError` if an index hides that its segment has aborted transactions."""
    section = known_section(key, entries)
    if section is not None and (missing := missing_aborted(section, batches)) is not None:
        raise DamagedObjectError(
            key,
            f"it lacks the aborted transaction of producer {missing.producer_id} at offsets"
            f" {missing.first_offset} to {missing.last_offset}",
        )


# --- tasks ----------------------------------------------------------------------------------------


class ScrubItem(msgspec.Struct, frozen=True):
    """The objects that one task verifies."""

    segments: tuple[ListedSegment, ...] = ()
    """Neighbouring segments of one or more partitions."""
    before: ListedSegment | None = None
    """The segment before the first one in its partition, if any."""
    wal_keys: tuple[str, ...] = ()


class CheckedSegment(msgspec.Struct, frozen=True):
    """A segment that was read."""

    topic_partition: TopicPartition
    base_offset: int
    next_offset: int | None
    """None if it is damaged."""
    record_count: int
    size_bytes: int


class ScrubResult(msgspec.Struct):
    checked: list[CheckedSegment] = []
    findings: list[Finding] = []
    wal_count: int = 0


def scrub_objects(location: Location, now_ms: int, item: ScrubItem, *, repair: bool) -> ScrubResult:
    """Verify some objects."""
    result = ScrubResult()
    with location.open() as store:
        task = _Task(store, now_ms, result, repair=repair)
        if repair and item.before is not None:
            task.load_before(item.before)
        for listed in item.segments:
            task.check_segment(listed)
        for key in item.wal_keys:
            task.check_wal(location.namespace, key)
    return result


class _Previous(NamedTuple):
    """What is known of the log up to a segment."""

    topic_partition: TopicPartition
    end_offset: int
    greatest_ms: int | None
    """The greatest timestamp."""
    section: TransactionSection | None


class _Task:
    def __init__(
        self, store: BlockingObjectStore, now_ms: int, result: ScrubResult, *, repair: bool
    ) -> None:
        self._store = store
        self._now_ms = now_ms
        self._result = result
        self._repair = repair
        self._previous: _Previous | None = None

    def load_before(self, before: ListedSegment) -> None:
        """Read what the index of the segment before the first one says.

        It speaks of that segment's end, which is elsewhere while a merge is not complete.
        """
        with suppress(ObjectNotFoundError, DamagedObjectError):
            footer = self._store.run(lambda objects: read_segment_footer(objects, before.key))
            entries = verify_index(
                before.index_key, self._store.get(before.index_key), before.base_offset
            )
            self._previous = _Previous(
                before.topic_partition,
                footer.last_offset + 1,
                entries.log_max_timestamp_ms,
                known_section(before.index_key, entries),
            )

    # --- segments -----------------------------------------------------------------------------

    def check_segment(self, listed: ListedSegment) -> None:
        for reads_left in reversed(range(READS_MAX)):
            try:
                data = self._store.get(listed.key)
                verified = verify_segment(listed.key, data, listed.base_offset)
                check_records(listed.key, verified.batches)
            except ObjectNotFoundError:
                return
            except DamagedObjectError as error:
                if not reads_left:
                    self._add_finding(
                        FindingKind.SEGMENT, listed.key, error.reason, listed.topic_partition[0]
                    )
                    self._note(listed, None)
                continue
            finding, entries = self._check_index(listed, verified)
            if finding is None or not reads_left:
                self._note(listed, verified)
                self._report(listed, verified, finding, entries)
                return

    def _note(self, listed: ListedSegment, verified: Segment | None) -> None:
        self._result.checked.append(
            CheckedSegment(
                listed.topic_partition,
                listed.base_offset,
                verified.footer.last_offset + 1 if verified else None,
                verified.header.count if verified else 0,
                listed.size_bytes,
            )
        )

    def _check_index(
        self, listed: ListedSegment, verified: Segment
    ) -> tuple[Finding | None, Index | None]:
        """Return what is wrong with the index of a segment, or the index."""
        key, topic = listed.index_key, listed.topic_partition[0]
        try:
            data = self._store.get(key)
            entries = verify_index(key, data, listed.base_offset, verified.batches)
            check_transactions(key, entries, verified.batches)
        except ObjectNotFoundError:
            if self._now_ms - listed.modified_ms < GRACE_MS:
                return None, None
            return Finding(FindingKind.MISSING_INDEX, key, topic=topic), None
        except DamagedObjectError as error:
            return Finding(FindingKind.INDEX, key, error.reason, topic), None
        return None, entries

    def _report(
        self,
        listed: ListedSegment,
        verified: Segment,
        finding: Finding | None,
        entries: Index | None,
    ) -> None:
        """Report a finding, after repairing the index if requested."""
        previous = self._previous
        if previous is None or previous[:2] != (listed.topic_partition, listed.base_offset):
            previous = _Previous(listed.topic_partition, listed.base_offset, None, None)
        if listed.is_first:
            # Transactions that began before it have no batches left there.
            previous = previous._replace(section=TransactionSection.empty())
        if finding is not None:
            if self._repair:
                entries = self._repair_index(listed, verified, finding, previous)
            is_repaired = self._repair and entries is not None
            self._result.findings.append(msgspec.structs.replace(finding, is_repaired=is_repaired))
        greatest_ms = entries.log_max_timestamp_ms if entries else None
        next_offset = verified.footer.last_offset + 1
        section = known_section(listed.index_key, entries)
        if section is None and previous.section is not None:
            section = rebuild_section(previous.section, verified.batches)
        self._previous = _Previous(listed.topic_partition, next_offset, greatest_ms, section)

    def _repair_index(
        self, listed: ListedSegment, verified: Segment, finding: Finding, previous: "_Previous"
    ) -> Index | None:
        """Rebuild an index; None if it could not be installed."""
        key = listed.index_key
        is_missing = finding.kind is FindingKind.MISSING_INDEX
        damaged = b""
        if not is_missing:
            try:
                damaged = bytes(self._store.get(key))
            except ObjectNotFoundError:
                is_missing = True
        rebuilt = index_repair.rebuild_index(
            key, verified.batches, damaged, previous.greatest_ms, previous.section
        )
        is_installed = index_repair.install_index(
            self._store, listed.key, verified.footer.checksum, key, rebuilt, is_missing=is_missing
        )
        return rebuilt if is_installed else None

    # --- WAL ----------------------------------------------------------------------------------

    def check_wal(self, namespace: str, key: str) -> None:
        ref = object_keys.parse_wal(namespace, key)
        assert ref is not None
        reason = ""
        for _ in range(READS_MAX):
            try:
                data = self._store.get(key)
                for batches in verify_wal_object(key, data, ref):
                    check_records(key, batches)
            except ObjectNotFoundError:
                return
            except DamagedObjectError as error:
                reason = error.reason
            else:
                self._result.wal_count += 1
                return
        self._add_finding(FindingKind.WAL, key, reason)

    def _add_finding(self, kind: FindingKind, key: str, reason: str, topic: str = "") -> None:
        self._result.findings.append(Finding(kind, key, reason, topic))


def plan_items(
    segments: Sequence[ListedSegment], wal: Sequence[ObjectInfo], bytes_max: int
) -> list[ScrubItem]:
    """Split objects into tasks of about `bytes_max`, with neighbouring segments together."""
    items: list[ScrubItem] = []
    before: ListedSegment | None = None
    for chunk in _chunks(segments, bytes_max):
        if before is not None and before.topic_partition != chunk[0].topic_partition:
            before = None
        items.append(ScrubItem(segments=chunk, before=before))
        before = chunk[-1]
    return items + [
        ScrubItem(wal_keys=tuple(item.key for item in chunk)) for chunk in _chunks(wal, bytes_max)
    ]


def _chunks(items: Sequence[Listed], bytes_max: int) -> Iterator[tuple[Listed, ...]]:
    """Split items into chunks of at most `bytes_max`, or of one larger item."""
    chunk: list[Listed] = []
    chunk_bytes = 0
    for item in items:
        if chunk and chunk_bytes + item.size_bytes > bytes_max:
            yield tuple(chunk)
            chunk, chunk_bytes = [], 0
        chunk.append(item)
        chunk_bytes += item.size_bytes
    if chunk:
        yield tuple(chunk)
