"""Filters records, and scans batches for matching ones.

Invariants of the filter: `may_match` is never False for a batch with a matching record, and costs a
fraction of decoding it; `matches` decides. Text is searched in the bytes, and in the rendered text
where that differs. Case is ignored; non-ASCII text is compared as Unicode, which is slower.

Invariants of the scan: the cost of a batch is bounded, whatever its header claims; a batch beyond
the bounds is skipped and reported. Control batches are skipped. No more than `limit` matches are
kept: the first, or the last ones. Scanning does not wait for anything, but takes time; call it from
threads.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kafscale.admin.messages import json_path
from kafscale.admin.messages.query import FilterSpec
from kafscale.admin.messages.renderer import PayloadRenderer
from kafscale.errors import InvalidRecordError, RecordsError, StoreUnavailableError
from kafscale.records import BatchView, Codec, Record, TimestampType, inflate, iterate

INFLATED_BYTES_MAX: Final = 64 * 1024 * 1024
BATCH_RECORDS_MAX: Final = 1_000_000


class RecordFilter:
    """A compiled filter, with the renderers of keys and values."""

    __slots__ = (
        "_equals",
        "_header",
        "_key",
        "_keys",
        "_needle",
        "_path",
        "_text",
        "_values",
        "_words",
    )

    def __init__(self, spec: FilterSpec, keys: PayloadRenderer, values: PayloadRenderer) -> None:
        self._keys = keys
        self._values = values
        self._key = spec.key
        self._text = spec.text.lower()
        self._needle = self._text.encode() if spec.text.isascii() else b""
        self._path = json_path.parse(spec.json_path) if spec.json_path else ()
        words = [step for step in self._path if not step.isdigit()]  # Numbers may be indexes.
        if json_path.is_plain_text(spec.json_equals):
            words.append(spec.json_equals)
        self._words = [word.encode() for word in words if _is_literal_in_json(word)]
        self._equals = spec.json_equals
        self._header = spec.header

    @property
    def matches_all(self) -> bool:
        return not (self._key or self._text or self._path or self._header)

    def may_match(self, data: bytes) -> bool:
        """False if no record in these bytes can match."""
        if self._header and self._header.encode() not in data:
            return False
        if self._key and self._keys.is_verbatim and self._key.encode() not in data:
            return False
        if self._needle and self._keys.is_verbatim and self._values.is_verbatim:
            return self._needle in data.lower()
        if self._path and self._values.is_verbatim:
            return b"\\u" in data or all(word in data for word in self._words)
        return True

    def matches(self, record: Record) -> bool:
        return (
            (not self._header or any(each.key == self._header for each in record.headers))
            and (not self._key or self._has_key(record))
            and (not self._text or self._has_text(record))
            and (not self._path or self._has_field(record))
        )

    def _has_key(self, record: Record) -> bool:
        key = record.key
        if key is None:
            return False
        if key == self._key.encode():
            return True
        if self._keys.is_verbatim:
            return False
        return self._keys.render(key).text in {self._key, f'"{self._key}"'}

    def _has_text(self, record: Record) -> bool:
        return (
            self._contains_text(record.key, self._keys)
            or self._contains_text(record.value, self._values)
            or any(
                self._text in header.key.lower() or self._contains_text(header.value, None)
                for header in record.headers
            )
        )

    def _contains_text(self, payload: bytes | None, renderer: PayloadRenderer | None) -> bool:
        if not payload:
            return False
        if self._needle:
            if self._needle in payload.lower():
                return True
        elif self._text in payload.decode(errors="replace").lower():
            return True
        if renderer is None or renderer.is_verbatim:
            return False
        return self._text in renderer.render(payload).text.lower()

    def _has_field(self, record: Record) -> bool:
        if record.value is None:
            return False
        try:
            value = self._values.parse_json(record.value)
        except (InvalidRecordError, StoreUnavailableError):
            return False
        field = json_path.find(value, self._path)
        if field is json_path.MISSING:
            return False
        return not self._equals or json_path.equals(field, self._equals)


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


def _is_literal_in_json(word: str) -> bool:
    """True if JSON has no escape for it but that by code points."""
    return word.isprintable() and not set(word) & set('/"\\')
