"""Helpers for format tests: batches at offsets, and damaged objects."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hypothesis import strategies

from kafscale.records import BatchView, Codec, Record, build

CREATED_MS = 1_700_000_000_000
UPSTREAM = Path(__file__).parents[2] / "fixtures" / "upstream-1.6" / "production"
UPSTREAM_SEGMENTS = sorted(UPSTREAM.rglob("*.kfs"))


def batch(
    base_offset: int = 0,
    count: int = 1,
    *,
    codec: Codec = Codec.NONE,
    timestamp_ms: int = CREATED_MS,
    value: bytes = b"value",
    control: bool = False,
) -> BatchView:
    """A batch whose records are a millisecond apart, the last at `timestamp_ms`."""
    records = [
        Record(base_offset + index, timestamp_ms - count + 1 + index, b"key", value)
        for index in range(count)
    ]
    return BatchView(build(records, codec=codec, control=control))


def contiguous_batches(base_offset: int, counts: Sequence[int], **fields: int) -> list[BatchView]:
    """Contiguous batches with these record counts."""
    batches = []
    for count in counts:
        batches.append(batch(base_offset, count, **fields))
        base_offset += count
    return batches


@strategies.composite
def batch_lists(draw: strategies.DrawFn) -> list[BatchView]:
    """Contiguous batches from any offset, with any codec, size and timestamp."""
    base_offset = draw(strategies.integers(0, 2**62))
    batches = []
    for count in draw(strategies.lists(strategies.integers(1, 120), min_size=1, max_size=12)):
        codec = draw(strategies.sampled_from(Codec))
        timestamp_ms = draw(strategies.integers(0, 2**42))
        value = draw(strategies.sampled_from((b"", b"value", b"x" * 200)))
        batches.append(
            batch(base_offset, count, codec=codec, timestamp_ms=timestamp_ms, value=value)
        )
        base_offset += count
    return batches


def joined(parts: Sequence[bytes | bytearray | memoryview]) -> bytes:
    return b"".join(parts)


def with_flipped_bits(data: bytes, *, but: Sequence[range] = ()) -> Iterator[tuple[int, bytes]]:
    """The data with each bit flipped in turn, except at the given positions."""
    spared = {position for positions in but for position in positions}
    for position in range(len(data)):
        if position in spared:
            continue
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            yield position, bytes(damaged)
