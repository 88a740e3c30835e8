"""Scans batches for matching records.

Invariants: the cost of a batch is bounded, whatever its header claims; a batch beyond the bounds is
skipped and reported. Control batches are skipped. No more than `limit` matches are kept: the first,
or the last ones. Scanning does not wait for anything, but takes time; call it from threads.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kafscale.admin.messages.filter import RecordFilter
from kafscale.errors import RecordsError
from kafscale.records import BatchView, Codec, Record, TimestampType, inflate, iterate

INFLATED_BYTES_MAX: Final = 64 * 1024 * 1024
BATCH_RECORDS_MAX: Final = 1_000_000


class Match(NamedTuple):
    """A record that matches the filter."""

    partition: int
    record: Record
    timestamp_type: TimestampType


class ScanRange(NamedTuple):
    """The offsets to scan, the number of matches to keep, and from which end."""

    partition: int
    low: int
    high: int
    limit: int
    newest: bool


class ScanResult(NamedTuple):
    matches: list[Match]
    """In the order of offsets."""

    is_truncated: bool
    """True if there were more matches: before the first one if `newest`, else after the last."""

    record_count: int
    size_bytes: int
    """As fetched, plus the decompressed size where that was needed."""

    problems: list[str]


def scan(
    batches: Iterable[BatchView], record_filter: RecordFilter, scan_range: ScanRange
) -> ScanResult:
    """Scan the records of a range; batches are in the order of offsets."""
    scanner = _Scanner(record_filter, scan_range)
    kept: deque[Match] = deque(maxlen=scan_range.limit)
    is_truncated = False
    for match in scanner.matches(batches):
        if len(kept) == scan_range.limit:
            is_truncated = True
            if not scan_range.newest:
                break
        kept.append(match)
    return ScanResult(
        list(kept), is_truncated, scanner.record_count, scanner.size_bytes, scanner.problems
    )


class _Scanner:
    def __init__(self, record_filter: RecordFilter, scan_range: ScanRange) -> None:
        self._filter = record_filter
        self._range = scan_range
        self.record_count = 0
        self.size_bytes = 0
        self.problems: list[str] = []

    def matches(self, batches: Iterable[BatchView]) -> Iterator[Match]:
        for batch in batches:
            self.size_bytes += len(batch)
            if batch.is_control:
                continue
            try:
                yield from self._batch_matches(batch)
            except RecordsError as error:
                where = f"offsets {batch.base_offset} to {batch.last_offset}"
                self.problems.append(
                    f"partition {self._range.partition}, {where} cannot be read: {error}"
                )

    def _batch_matches(self, batch: BatchView) -> Iterator[Match]:
        if batch.count > BATCH_RECORDS_MAX:
            self.problems.append(
                f"partition {self._range.partition}: the batch at offset {batch.base_offset}"
                f" claims {batch.count} records, which is too many to scan"
            )
            return
        low, high = self._range.low, self._range.high
        timestamp_type = batch.timestamp_type
        is_compressed = batch.codec is not Codec.NONE
        if not self._filter.matches_all:
            data = inflate(batch, decompressed_bytes_max=INFLATED_BYTES_MAX)
            self.size_bytes += len(data) if is_compressed else 0
            if not self._filter.may_match(data):
                self.record_count += batch.count
                return
        for record in iterate(batch, decompressed_bytes_max=INFLATED_BYTES_MAX):
            if low <= record.offset < high:
                self.record_count += 1
                if is_compressed and self._filter.matches_all:
                    self.size_bytes += len(record.key or b"") + len(record.value or b"")
                if self._filter.matches(record):
                    yield Match(self._range.partition, record, timestamp_type)
