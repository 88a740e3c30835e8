"""Helpers for records tests: strategies for records, and invalid batches."""

from struct import Struct, pack
from zlib import crc32

from hypothesis import strategies

from kafscale.records import BatchView, Codec, Header, Record, build
from kafscale.records.compression import compress

INT64_MAX = 2**63 - 1
LEGACY_CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4]

blobs = strategies.none() | strategies.binary(max_size=40)
headers = strategies.builds(Header, strategies.text(max_size=10), blobs)
timestamps = strategies.integers(-1, 2**42)


@strategies.composite
def record_lists(draw: strategies.DrawFn, size_max: int = 8) -> list[Record]:
    """Records of one batch: offsets ascend without a gap from any base."""
    base_offset = draw(strategies.integers(0, INT64_MAX - size_max))
    contents = draw(
        strategies.lists(
            strategies.tuples(timestamps, blobs, blobs, strategies.lists(headers, max_size=3)),
            min_size=1,
            max_size=size_max,
        )
    )
    return [
        Record(base_offset + index, timestamp_ms, key, value, tuple(named))
        for index, (timestamp_ms, key, value, named) in enumerate(contents)
    ]


RECORDS = (
    Record(
        0, 1_700_000_000_000, b"key", b"value", (Header("trace", b"\x01"), Header("none", None))
    ),
    Record(1, 1_700_000_000_250, None, b"", ()),
    Record(2, 1_699_999_999_000, b"", None, (Header("", b""),)),
    Record(3, -1, "ключ".encode(), b"v" * 300, (Header("größe", b"x" * 70),)),
)
"""Nulls, empty values, descending timestamps, and lengths of one and two bytes."""


def example(codec: Codec = Codec.NONE, **fields: int) -> BatchView:
    return BatchView(build(RECORDS, codec=codec, **fields))


def rewritten(batch: BatchView, position: int, layout: str, value: int) -> BatchView:
    """The batch with one header field changed and a new checksum."""
    Struct(layout).pack_into(batch.buffer, position, value)
    batch.write_checksum()
    return batch


def message(
    magic: int,
    offset: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    attributes: int = 0,
    timestamp_ms: int = 1000,
) -> bytes:
    """A message, written independently of the code under test."""
    body = pack(">bb", magic, attributes)
    if magic == 1:
        body += pack(">q", timestamp_ms)
    for field in (key, value):
        body += pack(">i", -1) if field is None else pack(">i", len(field)) + field
    return pack(">qi", offset, len(body) + 4) + pack(">I", crc32(body)) + body


def wrapper(magic: int, codec: Codec, offset: int, inner: bytes, *, attributes: int = 0) -> bytes:
    value = compress(codec, inner)
    return message(magic, offset, value, attributes=codec | attributes, timestamp_ms=9000)
