"""Whether an object is whole, and what its name says.

The formats prove themselves when they are read; what is added here are the batches inside, each by
its own checksum, the names of files, and that an index fits the segment beside it.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.records import BatchView, split
from kafscale.storage.formats import index, object_keys, segment, wal_object


def verify(path: Path, buffer: memoryview, beside: memoryview | None = None) -> None:
    """Raise `DamagedObjectError` unless an object is whole and what its name says.

    `beside` is the segment of an index, if there is one.
    """
    match path.suffix:
        case object_keys.SEGMENT_SUFFIX:
            _verify_segment(path, buffer)
        case object_keys.INDEX_SUFFIX:
            _verify_index(path, buffer, beside)
        case _:
            assert path.suffix == object_keys.WAL_SUFFIX
            _verify_wal(path, buffer)


def _verify_segment(path: Path, buffer: memoryview) -> None:
    found = segment.read(str(path), buffer)
    _check_batches(path, found.batches)
    _check_base_offset(path, found.header.base_offset)


def _verify_index(path: Path, buffer: memoryview, beside: memoryview | None) -> None:
    found = index.decode(str(path), buffer)
    _check_base_offset(path, found.offsets[0])
    if beside is not None:
        with suppress(RecordsError):  # A damaged segment has a verdict of its own.
            batches = split(beside[segment.HEADER_BYTES : -segment.FOOTER_BYTES])
            index.verify(str(path), found, batches)


def _verify_wal(path: Path, buffer: memoryview) -> None:
    found = wal_object.decode(str(path), buffer)
    for each in found.ranges:
        try:
            batches = split(found.body(each))
        except RecordsError as error:
            raise DamagedObjectError(str(path), f"{_place(each)}: {error}") from None
        _check_offsets(path, each, batches)
        _check_batches(path, batches)
    header = found.header
    parts = path.absolute().parts[-5:]
    named = object_keys.parse_wal(parts[0], "/".join(parts))
    if named not in (None, object_keys.WalRef(header.broker_id, header.epoch, header.sequence)):
        reason = (
            f"it is of broker {header.broker_id}, epoch {header.epoch}, sequence {header.sequence},"
            " unlike its name"
        )
        raise DamagedObjectError(str(path), reason)


def _check_offsets(path: Path, each: wal_object.Range, batches: Sequence[BatchView]) -> None:
    """That the batches of a range follow each other, and span what the table says."""
    next_offset = each.base_offset
    for batch in batches:
        if batch.base_offset != next_offset:
            reason = f"the batch at offset {batch.base_offset} should be at {next_offset}"
            raise DamagedObjectError(str(path), f"{_place(each)}: {reason}")
        next_offset = batch.next_offset
    if next_offset - 1 != each.last_offset:
        reason = f"its last offset is {next_offset - 1}, but the table says {each.last_offset}"
        raise DamagedObjectError(str(path), f"{_place(each)}: {reason}")


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
        raise DamagedObjectError(str(path), f"its first offset is {base_offset}, unlike its name")


def _place(each: wal_object.Range) -> str:
    return f"{each.topic}-{each.partition}"
