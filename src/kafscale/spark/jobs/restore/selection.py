"""What of a batch is restored: all of it, some of its records, or nothing.

The laws: records up to an offset and up to a time are chosen, each by its own offset and its own
timestamp, in the order of the log; whether times ascend makes no difference. A batch of which
everything is chosen is copied as it is, with its codec. Any other is built anew from the records
that are chosen, in the same codec; so are batches that a producer may not send, which have to
become such: those with the broker's timestamps, which become the records' own, those that
compaction has left gaps in, and those of transactions. Control batches hold no records.

Pure.
"""

import msgspec

from kafscale.records import BatchView, Codec, Record, build, iterate
from kafscale.records.compression import CODEC_MASK


class Selection(msgspec.Struct, frozen=True):
    """Which records of a partition are wanted."""

    start_offset: int
    end_offset: int
    """The first that is not wanted."""
    until_ms: int | None = None
    """The time of the latest that is wanted."""

    def holds(self, record: Record) -> bool:
        return self.start_offset <= record.offset < self.end_offset and (
            self.until_ms is None or record.timestamp_ms <= self.until_ms
        )

    def chosen(self, batch: BatchView) -> bytearray | None:
        """What of a batch is wanted, as a batch that can be produced; None if nothing is."""
        if batch.is_control:
            return None
        if self.is_whole(batch):
            return bytearray(batch.buffer)
        return rebuilt([record for record in iterate(batch) if self.holds(record)], batch.codec)

    def is_whole(self, batch: BatchView) -> bool:
        """Whether a batch can be copied as it is."""
        header = batch.header()
        return (
            # Codecs are in the lowest bits; any other tells that it is no plain producer's.
            header.attributes & ~CODEC_MASK == 0
            and header.record_count == header.last_offset_delta + 1
            and header.base_offset >= self.start_offset
            and header.base_offset + header.last_offset_delta < self.end_offset
            and (self.until_ms is None or header.max_timestamp_ms <= self.until_ms)
        )


def rebuilt(records: list[Record], codec: Codec) -> bytearray | None:
    """The records as a batch of their own; None if there are none."""
    if not records:
        return None
    return build(
        [msgspec.structs.replace(record, offset=index) for index, record in enumerate(records)],
        codec=codec,
    )
