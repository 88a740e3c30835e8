"""Batches looked through for records that are wanted.

The laws: no batch costs more than its bounds, whatever it claims: one that would is left out and
told of. Control batches hold nothing for people and are passed over. No more records are kept than
somebody wants to see: the first ones, or the last. Made for threads: nothing here waits, but it may
take a while.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kafscale.admin.messages.filter import Sieve
from kafscale.errors import RecordsError
from kafscale.records import BatchView, Codec, Record, TimestampType, inflate, iterate

INFLATED_BYTES_MAX: Final = 64 * 1024 * 1024
BATCH_RECORDS_MAX: Final = 1_000_000


class Match(NamedTuple):
    """A record that is wanted."""

    partition: int
    record: Record
    timestamp_type: TimestampType


class Stretch(NamedTuple):
    """Which offsets to look at, how many records to keep, and from which end."""

    partition: int
    low: int
    high: int
    keep: int
    newest: bool


class Scanned(NamedTuple):
    matches: list[Match]
    """In the order of their offsets."""

    is_cut: bool
    """Whether there were more: before the first match if the newest were wanted, else behind the
    last."""

    record_count: int
    size_bytes: int
    """As they came, and decompressed where that was needed: what the work was."""

    problems: list[str]


def scan(batches: Iterable[BatchView], sieve: Sieve, stretch: Stretch) -> Scanned:
    """Look at the records of a stretch; batches come in the order of their offsets."""
    scanning = _Scanning(sieve, stretch)
    kept: deque[Match] = deque(maxlen=stretch.keep)
    is_cut = False
    for match in scanning.matches(batches):
        if len(kept) == stretch.keep:
            is_cut = True
            if not stretch.newest:
                break
        kept.append(match)
    return Scanned(
        list(kept), is_cut, scanning.record_count, scanning.size_bytes, scanning.problems
    )


class _Scanning:
    def __init__(self, sieve: Sieve, stretch: Stretch) -> None:
        self._sieve = sieve
        self._stretch = stretch
        self.record_count = 0
        self.size_bytes = 0
        self.problems: list[str] = []

    def matches(self, batches: Iterable[BatchView]) -> Iterator[Match]:
        for batch in batches:
            self.size_bytes += len(batch)
            if batch.is_control:
                continue
            try:
                yield from self._matches_of(batch)
            except RecordsError as error:
                where = f"offsets {batch.base_offset} to {batch.last_offset}"
                self.problems.append(
                    f"partition {self._stretch.partition}, {where} cannot be read: {error}"
                )

    def _matches_of(self, batch: BatchView) -> Iterator[Match]:
        if batch.count > BATCH_RECORDS_MAX:
            self.problems.append(
                f"partition {self._stretch.partition}: the batch at offset {batch.base_offset}"
                f" says it has {batch.count} records, which is too many to look at"
            )
            return
        low, high = self._stretch.low, self._stretch.high
        timestamp_type = batch.timestamp_type
        is_compressed = batch.codec is not Codec.NONE
        if not self._sieve.keeps_all:
            data = inflate(batch, decompressed_bytes_max=INFLATED_BYTES_MAX)
            self.size_bytes += len(data) if is_compressed else 0
            if not self._sieve.may_hold(data):
                self.record_count += batch.count
                return
        for record in iterate(batch, decompressed_bytes_max=INFLATED_BYTES_MAX):
            if low <= record.offset < high:
                self.record_count += 1
                if is_compressed and self._sieve.keeps_all:
                    self.size_bytes += len(record.key or b"") + len(record.value or b"")
                if self._sieve.keeps(record):
                    yield Match(self._stretch.partition, record, timestamp_type)
