"""Targets of records: batches, message sets of old clients, compression, and Spark's decoder.

Almost no mutation leaves a checksum valid, so the inputs of these targets get new checksums and
lengths before they are decoded. Their first byte chooses between variants.
"""

from collections.abc import Iterator
from struct import pack_into, unpack_from

from doubles.reference_decoder import ReferenceDecoder
from fuzz.target import Target
from kafscale.broker.shared import produced_batch
from kafscale.broker.shared.produced_batch import BatchRules
from kafscale.errors import DamagedObjectError, RecordsError, RefusedError
from kafscale.records import BatchView, Codec, Header, Record, build, down_convert, iterate, split
from kafscale.records.batch import HEADER_BYTES
from kafscale.records.checksum import crc32
from kafscale.records.compression import compress, decompress
from kafscale.records.validation import RecordRules
from kafscale.spark.codec.columns import ALL_WITH_HEADERS
from kafscale.spark.codec.decoder import Decoder

NOW_MS = 1_750_000_000_000
DAY_MS = 24 * 3600 * 1000
DECOMPRESSED_BYTES_MAX = 1 << 20
MESSAGE_BYTES_MAX = 1 << 20
ENTRY_BYTES = 12
"""Offset and size before each message of a set."""
DECODER = Decoder(ALL_WITH_HEADERS, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX)
REFERENCE = ReferenceDecoder(ALL_WITH_HEADERS, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX)
RECORDS = [
    Record(0, NOW_MS, b"key", b"value", (Header("name", b"1"), Header("", None))),
    Record(1, NOW_MS + 5, None, b"x" * 200, ()),
    Record(2, NOW_MS - 5, b"", None, ()),
]


def repaired(data: bytes) -> bytearray:
    """The bytes as one batch of magic 2, with the length and checksum that they should have."""
    batch = bytearray(data)
    if len(batch) >= HEADER_BYTES:
        pack_into(">i", batch, 8, len(batch) - ENTRY_BYTES)
        batch[16] = 2
        BatchView(batch).write_checksum()
    return batch


def batches(**fields: int) -> Iterator[bytes]:
    for codec in Codec:
        yield bytes(build(RECORDS, codec=codec, **fields))


# --- produce ----------------------------------------------------------------------------------


def produce(data: bytes) -> None:
    """What a broker stores, consumers can read."""
    version = data[0] % 14 if data else 0
    settings = RecordRules(
        requires_keys=bool(data[:1] > b"\xe0"),
        timestamp_min_ms=NOW_MS - DAY_MS,
        timestamp_max_ms=NOW_MS + DAY_MS,
    )
    rules = BatchRules(version, MESSAGE_BYTES_MAX, is_create_time=True, records=settings)
    records = memoryview(repaired_sets(data[1:]) if version < 3 else repaired(data[1:]))
    accepted = produced_batch.read_inline(memoryview(bytearray(records)), rules)
    produced = produced_batch.read(records, rules)
    if accepted is not None:
        assert bytes(accepted.batch.buffer) == bytes(produced.batch.buffer)
    read = list(iterate(produced.batch))
    assert len(read) == produced.header.record_count
    assert max(record.timestamp_ms for record in read) == produced.header.max_timestamp_ms


def produce_seeds() -> Iterator[bytes]:
    for batch in batches():
        for version in (b"\x03", b"\x0d", b"\xf0"):
            yield version + batch
    for messages in message_sets():
        yield b"\x02" + messages


# --- message sets -----------------------------------------------------------------------------


def repaired_sets(data: bytes) -> bytearray:
    """The bytes as messages of magic 0 and 1, with the checksums that they should have."""
    messages = bytearray(data)
    position = 0
    while position + ENTRY_BYTES + 5 <= len(messages):
        (size,) = unpack_from(">i", messages, position + 8)
        end = position + ENTRY_BYTES + size
        if size < 5 or end > len(messages):
            break
        checksum = crc32(messages[position + ENTRY_BYTES + 4 : end])
        pack_into(">I", messages, position + ENTRY_BYTES, checksum)
        position = end
    return messages


def message_sets() -> Iterator[bytes]:
    for magic in (0, 1):
        inner = bytes(down_convert([BatchView(build(RECORDS))], magic))
        yield inner
        for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
            yield wrapper(magic, codec, inner)


def wrapper(magic: int, codec: Codec, inner: bytes) -> bytes:
    """A message whose value is a compressed message set."""
    value = compress(codec, inner)
    timestamp = NOW_MS.to_bytes(8) if magic else b""
    body = bytes([magic, codec]) + timestamp + b"\xff" * 4 + len(value).to_bytes(4) + value
    return bytes(8) + (len(body) + 4).to_bytes(4) + crc32(body).to_bytes(4) + body


# --- fetch of old clients, compression, Spark -------------------------------------------------


def convert(data: bytes) -> None:
    """The messages have the records of the batches."""
    found = split(repaired(data), partial_ok=True)
    for magic in (0, 1):
        down_convert(found, magic, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX)


def decompress_any(data: bytes) -> None:
    codec = Codec(data[0] % len(Codec) if data else 0)
    content = decompress(codec, data[1:], DECOMPRESSED_BYTES_MAX)
    assert codec is Codec.NONE or len(content) <= DECOMPRESSED_BYTES_MAX
    assert decompress(codec, compress(codec, content)) == content


def compressed_seeds() -> Iterator[bytes]:
    for codec in Codec:
        for content in (b"", b"some text, some text", bytes(100_000)):
            yield bytes([codec]) + compress(codec, content)[:16_000]


def decode_in_spark(data: bytes) -> None:
    """The compiled decoder and the one in plain Python have the same rows, or the same error."""
    batch = repaired(data)
    if len(batch) >= HEADER_BYTES:
        found = [BatchView(batch)]
        assert _rows(DECODER, found) == _rows(REFERENCE, found)


def _rows(decoder: Decoder | ReferenceDecoder, found: list[BatchView]) -> object:
    try:
        decoded = decoder.decode("key", "topic", 0, found, 0, 2**63)
    except DamagedObjectError as error:
        return error.reason
    decoded.validate(full=True)
    return decoded


TARGETS = (
    Target("produced records", produce, produce_seeds, (RecordsError, RefusedError)),
    Target("converted batches", convert, batches, (RecordsError,)),
    Target("compression", decompress_any, compressed_seeds, (RecordsError,)),
    Target("Spark decoder", decode_in_spark, batches, ()),
)
