"""Whether the bytes of an object are whole, down to the single record.

The formats prove themselves when they are read; what is added here are the batches inside, each by
its own checksum, and their records, which the decoder reads as any reader would. Whatever is wrong
raises `DamagedObjectError`.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.records import BatchView, iterate, split
from kafscale.records.checksum import Buffer
from kafscale.spark.jobs.shared.record_scan import chunk_batches, scan
from kafscale.storage.formats import object_keys, segment, wal_object


class ProvenSegment(msgspec.Struct, frozen=True):
    """A segment that is whole."""

    batches: list[BatchView]
    next_offset: int
    checksum: int
    record_count: int


def prove_segment(key: str, base_offset: int, data: Buffer) -> ProvenSegment:
    """A segment, of which the base offset is known from its name."""
    found = segment.read(key, data)
    if found.header.base_offset != base_offset:
        raise DamagedObjectError(key, f"its first offset is {found.header.base_offset}")
    prove_batches(key, found.batches)
    return ProvenSegment(
        found.batches, found.footer.last_offset + 1, found.footer.checksum, found.header.count
    )


def prove_wal(key: str, named: object_keys.WalRef, data: Buffer) -> list[wal_object.Range]:
    """A WAL object, of which the place is known from its name; what it holds."""
    found = wal_object.decode(key, data)
    header = found.header
    if named != object_keys.WalRef(header.broker_id, header.epoch, header.sequence):
        raise DamagedObjectError(key, "it is of another place in another stream")
    for each in found.ranges:
        try:
            batches = split(found.body(each))
        except RecordsError as error:
            raise DamagedObjectError(key, f"{each.topic}/{each.partition}: {error}") from error
        next_offset = each.base_offset
        for batch in batches:
            if batch.base_offset != next_offset:
                raise DamagedObjectError(key, f"{batch!r} should be at offset {next_offset}")
            next_offset = batch.next_offset
        if next_offset != each.last_offset + 1:
            raise DamagedObjectError(key, f"{each.topic}/{each.partition} ends at {next_offset}")
        prove_batches(key, batches)
    return found.ranges


def prove_batches(key: str, batches: Sequence[BatchView]) -> None:
    """All batches with all their records."""
    for batch in batches:
        try:
            batch.validate(from_producer=False)
            if batch.is_control:
                for _ in iterate(batch):
                    pass
        except RecordsError as error:
            reason = f"the batch at offset {batch.base_offset}: {error}"
            raise DamagedObjectError(key, reason) from error
    for several in chunk_batches(batches):
        offsets = scan(key, several).offsets
        if (np.diff(offsets) <= 0).any():
            raise DamagedObjectError(key, "the offsets of its records do not ascend")
