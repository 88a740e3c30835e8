"""Verifies whole objects: their format, their batches, and that they belong to their keys.

Decoding verifies the checksums of a format. These functions also verify the checksum of each batch,
the offsets of the batches in a WAL object, that an index matches its segment, and that the content
of an object is what its key says. They raise `DamagedObjectError`. Records are not decoded.
`salvage_wal_object` finds what is left of a damaged WAL object.

Where the expected base offset or reference is None, the key is not known.
"""

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.records import BatchView, split
from kafscale.records.batch import LENGTH_OVERHEAD_BYTES, LENGTH_POSITION
from kafscale.records.checksum import Buffer
from kafscale.storage.formats import index, segment, wal_object
from kafscale.storage.formats.index import Index
from kafscale.storage.formats.object_keys import WalRef
from kafscale.storage.formats.segment import Segment
from kafscale.storage.formats.wal_object import WalObject


def verify_segment(key: str, data: Buffer, base_offset: int | None) -> Segment:
    content = segment.read(key, data)
    _check_base_offset(key, content.header.base_offset, base_offset)
    _check_batches(key, content.batches)
    return content


def verify_index(
    key: str, data: Buffer, base_offset: int | None, batches: Iterable[BatchView] = ()
) -> Index:
    """Verify an index; `batches` are those of its segment, if it exists."""
    batches = list(batches)
    segment_bytes = sum(map(len, batches)) + segment.HEADER_BYTES + segment.FOOTER_BYTES
    entries = index.decode(key, data, segment_bytes if batches else None)
    _check_base_offset(key, entries.offsets[0], base_offset)
    if batches:
        index.verify(key, entries, batches)
    return entries


def verify_wal_object(key: str, data: Buffer, ref: WalRef | None) -> list[list[BatchView]]:
    """Verify a WAL object; return the batches of each of its ranges."""
    content = decode_wal_object(key, data, ref)
    ranges: list[list[BatchView]] = []
    for range_ in content.ranges:
        try:
            batches = split(content.body(range_))
        except RecordsError as error:
            raise DamagedObjectError(key, f"{range_.topic}/{range_.partition}: {error}") from None
        if reason := _misplaced_batch(range_, batches):
            raise DamagedObjectError(key, f"{range_.topic}/{range_.partition}: {reason}")
        _check_batches(key, batches)
        ranges.append(batches)
    return ranges


def decode_wal_object(key: str, data: Buffer, ref: WalRef | None) -> WalObject:
    """Decode a WAL object with the stream and sequence of its key; its batches are not read."""
    content = wal_object.decode(key, data)
    header = content.header
    if ref not in (None, WalRef(header.broker_id, header.epoch, header.sequence)):
        raise DamagedObjectError(
            key,
            f"its header has broker {header.broker_id}, epoch {header.epoch}, sequence"
            f" {header.sequence}, which differs from its name",
        )
    return content


class SalvagedRange(msgspec.Struct, frozen=True, gc=False):
    """What is left of a range of a damaged WAL object."""

    topic_id: bytes
    partition: int
    last_offset: int
    """The last offset of the range, whether its batch is left or not."""
    batches: list[BatchView]
    """The batches with valid checksums, in offset order; others may be missing in between."""


def salvage_wal_object(key: str, data: Buffer) -> list[SalvagedRange]:
    """Find the ranges of a damaged WAL object, and their undamaged batches.

    Raises `DamagedObjectError` if both copies of the table are damaged: then it is not known which
    partitions the batches belong to.
    """
    view = memoryview(data)
    _, ranges = wal_object.salvage(key, view)
    return [_salvage_range(range_, view) for range_ in ranges]


def _salvage_range(range_: wal_object.Range, view: memoryview) -> SalvagedRange:
    body = view[range_.position : range_.position + range_.length]
    found: list[BatchView] = []
    position = 0
    while position < len(body):
        length = int.from_bytes(
            body[position + LENGTH_POSITION : position + LENGTH_POSITION + 4], signed=True
        )
        end = position + LENGTH_OVERHEAD_BYTES + length
        if length <= 0 or end > len(body):
            break
        with suppress(RecordsError):
            batch = BatchView(body[position:end])
            batch.validate(from_producer=False)
            found.append(batch)
        position = end
    batches = _within(found, range_)
    return SalvagedRange(range_.topic_id, range_.partition, range_.last_offset, batches)


def _within(batches: Iterable[BatchView], range_: wal_object.Range) -> list[BatchView]:
    """The batches whose offsets ascend within a range; base offsets have no checksum."""
    found: list[BatchView] = []
    next_offset = range_.base_offset
    for batch in batches:
        if next_offset <= batch.base_offset and batch.last_offset <= range_.last_offset:
            found.append(batch)
            next_offset = batch.next_offset
    return found


def _check_base_offset(key: str, base_offset: int, expected: int | None) -> None:
    if expected not in (None, base_offset):
        raise DamagedObjectError(
            key, f"its first offset is {base_offset}, which differs from its name"
        )


def _misplaced_batch(range_: wal_object.Range, batches: Iterable[BatchView]) -> str:
    """How the offsets of batches differ from each other or from the footer; empty if they fit."""
    next_offset = range_.base_offset
    for batch in batches:
        if batch.base_offset != next_offset:
            return f"the batch at offset {batch.base_offset} should be at {next_offset}"
        next_offset = batch.next_offset
    if next_offset - 1 != range_.last_offset:
        return f"its last offset is {next_offset - 1}, but {range_.last_offset} in the footer"
    return ""


def _check_batches(key: str, batches: Iterable[BatchView]) -> None:
    for batch in batches:
        try:
            batch.validate(from_producer=False)
        except RecordsError as error:
            reason = f"the batch at offset {batch.base_offset}: {error}"
            raise DamagedObjectError(key, reason) from None
