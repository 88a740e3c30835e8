"""Verifies an object: its format, its batches and its name.

Decoding verifies the checksums of the format. This module also verifies the checksum of each batch,
the offsets in file names, and that an index matches its segment.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.records import BatchView, split
from kafscale.storage.formats import index, object_keys, segment, wal_object


def verify(path: Path, buffer: memoryview, segment_buffer: memoryview | None = None) -> None:
    """Raise `DamagedObjectError` if an object is damaged or does not match its name.

    `segment_buffer` is the content of the segment of an index, if it exists.
    """
    match path.suffix:
        case object_keys.SEGMENT_SUFFIX:
            _verify_segment(path, buffer)
        case object_keys.INDEX_SUFFIX:
            _verify_index(path, buffer, segment_buffer)
        case _:
            assert path.suffix == object_keys.WAL_SUFFIX
            _verify_wal(path, buffer)


def _verify_segment(path: Path, buffer: memoryview) -> None:
    decoded = segment.read(str(path), buffer)
    _check_batches(path, decoded.batches)
    _check_base_offset(path, decoded.header.base_offset)


def _verify_index(path: Path, buffer: memoryview, segment_buffer: memoryview | None) -> None:
    decoded = index.decode(str(path), buffer)
    _check_base_offset(path, decoded.offsets[0])
    if segment_buffer is not None:
        with suppress(RecordsError):  # The damage is reported for the segment itself.
            batches = split(segment_buffer[segment.HEADER_BYTES : -segment.FOOTER_BYTES])
            index.verify(str(path), decoded, batches)


def _verify_wal(path: Path, buffer: memoryview) -> None:
    decoded = wal_object.decode(str(path), buffer)
    for each in decoded.ranges:
        try:
            batches = split(decoded.body(each))
        except RecordsError as error:
            raise DamagedObjectError(str(path), f"{_partition_name(each)}: {error}") from None
        _check_offsets(path, each, batches)
        _check_batches(path, batches)
    header = decoded.header
    parts = path.absolute().parts[-5:]
    named = object_keys.parse_wal(parts[0], "/".join(parts))
    if named not in (None, object_keys.WalRef(header.broker_id, header.epoch, header.sequence)):
        reason = (
            f"its header has broker {header.broker_id}, epoch {header.epoch}, sequence"
            f" {header.sequence}, which differs from its name"
        )
        raise DamagedObjectError(str(path), reason)


def _check_offsets(path: Path, each: wal_object.Range, batches: Sequence[BatchView]) -> None:
    """Check that the batches of a range are contiguous and match the footer."""
    next_offset = each.base_offset
    for batch in batches:
        if batch.base_offset != next_offset:
            reason = f"the batch at offset {batch.base_offset} should be at {next_offset}"
            raise DamagedObjectError(str(path), f"{_partition_name(each)}: {reason}")
        next_offset = batch.next_offset
    if next_offset - 1 != each.last_offset:
        reason = f"its last offset is {next_offset - 1}, but {each.last_offset} in the footer"
        raise DamagedObjectError(str(path), f"{_partition_name(each)}: {reason}")


def _check_batches(path: Path, batches: Sequence[BatchView]) -> None:
    for batch in batches:
        try:
            batch.validate(from_producer=False)
        except RecordsError as error:
            reason = f"the batch at offset {batch.base_offset}: {error}"
            raise DamagedObjectError(str(path), reason) from None


def _check_base_offset(path: Path, base_offset: int) -> None:
    parts = path.absolute().parts[-4:]
    named = object_keys.parse_segment(parts[0], "/".join(parts))
    if named is not None and named.base_offset != base_offset:
        raise DamagedObjectError(
            str(path), f"its first offset is {base_offset}, which differs from its name"
        )


def _partition_name(each: wal_object.Range) -> str:
    return f"{each.topic}-{each.partition}"
