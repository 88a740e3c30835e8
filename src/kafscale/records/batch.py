"""A record batch of magic 2 as a memoryview: header fields, validation, and offset assignment.

Layout, big-endian, 61 bytes before the records:

    at  0  base offset             int64    set by the broker, not in the checksum
    at  8  batch length            int32    of the data after this field: size - 12
    at 12  partition leader epoch  int32    set by the broker, not in the checksum
    at 16  magic                   int8     2
    at 17  CRC                     uint32   CRC-32C of everything from the attributes to the end
    at 21  attributes              int16    bits 0-2 codec, 3 timestamp type, 4 transactional,
                                            5 control, 6 delete horizon (KIP-534: compaction has
                                            put it into the base timestamp); the others are unused
                                            and accepted
    at 23  last offset delta       int32    last offset - base offset
    at 27  base timestamp          int64    milliseconds; the records' deltas are relative to it
    at 35  max timestamp           int64    milliseconds
    at 43  producer id             int64    -1 without idempotence, like the next two
    at 51  producer epoch          int16
    at 53  base sequence           int32
    at 57  record count            int32
    at 61  records                          compressed together with the codec

Invariants: a `BatchView` is exactly one whole batch of magic 2. Nothing here copies, decompresses
or decodes single records, so the cost is per batch. `record` reads records, `builder` builds
batches, and `message_set` converts older formats.
"""

import enum
from struct import Struct
from typing import Final, NamedTuple

from kafscale.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    InvalidRecordError,
    InvalidTimestampError,
    UnsupportedFormatError,
)
from kafscale.records.checksum import Buffer, crc32c
from kafscale.records.compression import Codec, codec_of

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
LENGTH_OVERHEAD_BYTES: Final = 12
MAGIC: Final = 2

RECORDS_MAX: Final = 1_000_000
"""Limit of records per batch from a producer: a few bytes can say that there are millions, which
brokers, consumers and jobs would then decompress and read one by one."""
RECORD_BYTES_MIN: Final = 7
"""A record without key, value and headers has seven fields of one byte."""

LENGTH_POSITION: Final = 8
LEADER_EPOCH_POSITION: Final = 12
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
LAST_OFFSET_DELTA_POSITION: Final = 23
BASE_TIMESTAMP_POSITION: Final = 27
MAX_TIMESTAMP_POSITION: Final = 35
PRODUCER_ID_POSITION: Final = 43
PRODUCER_EPOCH_POSITION: Final = 51
BASE_SEQUENCE_POSITION: Final = 53
COUNT_POSITION: Final = 57

TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1

_SEQUENCE_MASK: Final = 0x7FFF_FFFF
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_INT64: Final = Struct(">q")

assert HEADER_BYTES == 61
assert Struct(">qiib").size == CRC_POSITION
assert Struct(">qiibI").size == ATTRIBUTES_POSITION
assert Struct(">qiibIhiqq").size == PRODUCER_ID_POSITION
assert COUNT_POSITION + _INT32.size == HEADER_BYTES


class TimestampType(enum.IntEnum):
    """Which clock set the timestamps of a batch."""

    CREATE_TIME = 0
    """The producer's; each record has its own timestamp."""
    LOG_APPEND_TIME = 1
    """The broker's; every record has the batch's max timestamp."""


class BatchHeader(NamedTuple):
    """All fields of a header; cheaper than reading several fields of a `BatchView`."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    checksum: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap from 2^31 - 1 to 0."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & _SEQUENCE_MASK


class BatchView:
    """One whole batch; fields are read from the buffer on access."""

    __slots__ = ("buffer",)

    buffer: memoryview

    def __init__(self, buffer: Buffer) -> None:
        view = memoryview(buffer)
        if len(view) < HEADER_BYTES:
            raise CorruptBatchError(f"a batch of {len(view)} bytes is shorter than its header")
        check_magic(view[MAGIC_POSITION])
        (length,) = _INT32.unpack_from(view, LENGTH_POSITION)
        if length != len(view) - LENGTH_OVERHEAD_BYTES:
            raise CorruptBatchError(f"a batch of {len(view)} bytes has length field {length}")
        self.buffer = view

    def __len__(self) -> int:
        return len(self.buffer)

    def __repr__(self) -> str:
        return (
            f"<BatchView offsets {self.base_offset}..{self.last_offset}"
            f" count {self.count} bytes {len(self)}>"
        )

    # --- validation -----------------------------------------------------------------------------

    def validate(
        self, *, size_bytes_max: int | None = None, from_producer: bool = True
    ) -> BatchHeader:
        """Raise unless the batch may be stored; return its header.

        With `from_producer` false, batches that only brokers and jobs write are accepted: control
        records, LogAppendTime, missing sequences, and offset gaps from compaction. Reserved
        attribute bits and all timestamps are always accepted, as in Kafka.
        """
        if size_bytes_max is not None and len(self.buffer) > size_bytes_max:
            raise BatchTooLargeError(
                f"a batch of {len(self.buffer)} bytes exceeds the limit of {size_bytes_max}"
            )
        self.verify_checksum()
        header = self.header()
        count = header.record_count
        codec = codec_of(header.attributes)
        if count < 1:
            raise InvalidRecordError(f"invalid record count {count} in a batch")
        span = header.last_offset_delta + 1
        if count > span or (from_producer and count < span):
            raise InvalidRecordError(
                f"a batch of {count} records has {header.last_offset_delta}"
                " as its last offset delta"
            )
        if from_producer:
            _check_producer(header.attributes, header.producer_id, header.base_sequence)
            self._check_count(count, codec)
        return header

    def _check_count(self, count: int, codec: Codec) -> None:
        """Raise if the batch is too small for the count of records, or the count too large."""
        size_bytes = len(self.buffer) - HEADER_BYTES
        if codec is Codec.NONE and count * RECORD_BYTES_MIN > size_bytes:
            raise InvalidRecordError(f"{count} records cannot have {size_bytes} bytes")
        if count > RECORDS_MAX:
            raise InvalidRecordError(
                f"a batch of {count} records exceeds the limit of {RECORDS_MAX}"
            )

    def verify_checksum(self) -> None:
        (stored,) = _UINT32.unpack_from(self.buffer, CRC_POSITION)
        computed = crc32c(self.buffer[ATTRIBUTES_POSITION:])
        if stored != computed:
            raise CorruptBatchError(
                f"batch CRC mismatch: computed {computed:08x}, stored {stored:08x}"
            )

    # --- fields set by the broker ---------------------------------------------------------------

    def stamp(self, base_offset: int, leader_epoch: int) -> None:
        """Set base offset and leader epoch in place; the checksum does not cover them."""
        _INT64.pack_into(self.buffer, 0, base_offset)
        _INT32.pack_into(self.buffer, LEADER_EPOCH_POSITION, leader_epoch)

    def stamp_max_timestamp(self, timestamp_ms: int) -> None:
        """Correct the largest timestamp in place, with a new checksum."""
        _INT64.pack_into(self.buffer, MAX_TIMESTAMP_POSITION, timestamp_ms)
        self.write_checksum()

    def stamp_append_time(self, timestamp_ms: int) -> None:
        """Set LogAppendTime in place, with a new checksum."""
        attributes = self.attributes | TIMESTAMP_TYPE_BIT
        _INT16.pack_into(self.buffer, ATTRIBUTES_POSITION, attributes)
        _INT64.pack_into(self.buffer, MAX_TIMESTAMP_POSITION, timestamp_ms)
        self.write_checksum()

    def write_checksum(self) -> None:
        checksum = crc32c(self.buffer[ATTRIBUTES_POSITION:])
        _UINT32.pack_into(self.buffer, CRC_POSITION, checksum)

    # --- fields -------------------------------------------------------------------------------

    def header(self) -> BatchHeader:
        return BatchHeader._make(HEADER.unpack_from(self.buffer))

    @property
    def payload(self) -> memoryview:
        """The records, in their compressed form."""
        return self.buffer[HEADER_BYTES:]

    @property
    def base_offset(self) -> int:
        return self._int64(0)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the last one."""
        return self.last_offset + 1

    @property
    def last_offset_delta(self) -> int:
        return self._int32(LAST_OFFSET_DELTA_POSITION)

    @property
    def leader_epoch(self) -> int:
        return self._int32(LEADER_EPOCH_POSITION)

    @property
    def checksum(self) -> int:
        """The stored CRC-32C."""
        (value,) = _UINT32.unpack_from(self.buffer, CRC_POSITION)
        return int(value)

    @property
    def attributes(self) -> int:
        return self._int16(ATTRIBUTES_POSITION)

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        if self.attributes & TIMESTAMP_TYPE_BIT:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def base_timestamp_ms(self) -> int:
        return self._int64(BASE_TIMESTAMP_POSITION)

    @property
    def max_timestamp_ms(self) -> int:
        return self._int64(MAX_TIMESTAMP_POSITION)

    @property
    def producer_id(self) -> int:
        return self._int64(PRODUCER_ID_POSITION)

    @property
    def producer_epoch(self) -> int:
        return self._int16(PRODUCER_EPOCH_POSITION)

    @property
    def base_sequence(self) -> int:
        return self._int32(BASE_SEQUENCE_POSITION)

    @property
    def last_sequence(self) -> int:
        return self.header().last_sequence

    @property
    def count(self) -> int:
        """The record count in the header."""
        return self._int32(COUNT_POSITION)

    def _int16(self, position: int) -> int:
        (value,) = _INT16.unpack_from(self.buffer, position)
        return int(value)

    def _int32(self, position: int) -> int:
        (value,) = _INT32.unpack_from(self.buffer, position)
        return int(value)

    def _int64(self, position: int) -> int:
        (value,) = _INT64.unpack_from(self.buffer, position)
        return int(value)


def split(records: Buffer, *, partial_ok: bool = False) -> list[BatchView]:
    """Split a records field or a file into batches.

    Fetch responses and range reads may truncate the last batch; `partial_ok` skips it.
    """
    view = memoryview(records)
    batches = []
    position = 0
    while position < len(view):
        end = _end(view, position)
        if end > len(view):
            if partial_ok:
                break
            raise CorruptBatchError(
                f"a batch extends {end - len(view)} bytes beyond its records field"
            )
        batches.append(BatchView(view[position:end]))
        position = end
    return batches


def single_batch(records: Buffer) -> BatchView:
    """Return the only batch of a records field; Produce v3 and later allow exactly one."""
    try:
        return BatchView(records)
    except CorruptBatchError:
        batches = split(records)  # Raises a more precise error, if any.
    raise InvalidRecordError(f"a records field has {len(batches)} batches, expected one")


def check_magic(magic: int) -> None:
    if magic == MAGIC:
        return
    if magic < MAGIC:
        raise UnsupportedFormatError(f"unsupported magic {magic}, expected {MAGIC}")
    raise CorruptBatchError(f"magic {magic} is unknown")


def _check_producer(attributes: int, producer_id: int, base_sequence: int) -> None:
    if attributes & CONTROL_BIT:
        raise InvalidRecordError("producers may not write control records")
    if attributes & TIMESTAMP_TYPE_BIT:
        raise InvalidTimestampError("producers may not set the broker's timestamp type")
    if producer_id >= 0 and base_sequence < 0:
        raise InvalidRecordError(f"producer {producer_id} sent {base_sequence} as its sequence")


def _end(view: memoryview, position: int) -> int:
    """The end of the batch at `position`, which may be after the end of the data."""
    if len(view) - position <= MAGIC_POSITION:
        return position + HEADER_BYTES
    # Check the magic first: it has the same position in every format, and a short message of an
    # older format is not a corrupt batch.
    check_magic(view[position + MAGIC_POSITION])
    (length,) = _INT32.unpack_from(view, position + LENGTH_POSITION)
    if length < HEADER_BYTES - LENGTH_OVERHEAD_BYTES:
        raise CorruptBatchError(f"invalid batch length {length}")
    return position + LENGTH_OVERHEAD_BYTES + int(length)
