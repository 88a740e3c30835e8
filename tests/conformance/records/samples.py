"""Records for the comparison with other clients."""

from kafscale.records import Header, Record

_NOW_MS = 1_700_000_000_000

MIXED = [
    Record(0, _NOW_MS, b"key", b"value", (Header("trace", b"\x00\x01"), Header("trace", None))),
    Record(1, _NOW_MS + 5000, None, b"no key"),
    Record(2, _NOW_MS - 9000, b"tombstone", None),
    Record(3, _NOW_MS, b"", b"", (Header("größe", b""),)),
    Record(4, _NOW_MS + 1, "ключ".encode(), bytes(range(256)) * 2),
]
"""Nulls, empty values, descending timestamps, duplicate headers, one- and two-byte lengths."""

MANY = [Record(index, _NOW_MS + index, b"k%d" % index, b"v" * (index % 90)) for index in range(700)]
"""Offsets and lengths that need longer varints."""

LARGE = [
    Record(0, _NOW_MS, None, b"".join(b"%08d" % number for number in range(30_000))),
    Record(1, _NOW_MS, None, bytes(150_000)),
]
"""Several blocks in every codec with blocks of 32, 64 or 128 KiB."""

SAMPLES = {"mixed": MIXED, "many": MANY, "large": LARGE}


def without_headers(records: list[Record], *, timestamps: bool = True) -> list[Record]:
    """The fields that an older format supports."""
    return [
        Record(record.offset, record.timestamp_ms if timestamps else -1, record.key, record.value)
        for record in records
    ]
