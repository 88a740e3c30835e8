"""Damaged segments, salvage, and segments written by upstream."""

from struct import pack

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import DamagedObjectError
from kafscale.records import BatchView
from kafscale.storage.formats import index, segment
from unit.storage.samples import (
    CREATED_MS,
    UPSTREAM_SEGMENTS,
    batch,
    contiguous_batches,
    joined,
    with_flipped_bits,
)

KEY = "default/orders/0/segment-00000000000000050000.kfs"
FLAGS = range(6, 8)
CREATED_AND_RESERVED = range(20, 32)


def written(batches: list[BatchView]) -> bytes:
    builder = segment.Builder(CREATED_MS, 4096, compression=None, prior_max_timestamp_ms=-1)
    for each in batches:
        builder.append(each)
    return joined(builder.finish().parts)


def sealed(body: bytes, *, base_offset=0, count=1, last_offset=0, magic=b"KAFS", version=1):
    """A segment whose checksum holds, whatever its header and footer say."""
    header = magic + pack(">hHqiqi", version, 0, base_offset, count, CREATED_MS, 0)
    return header + body + pack(">Iq", crc32c(body), last_offset) + b"END!"


EXAMPLE = written(contiguous_batches(50_000, [2, 1]))
ONE = bytes(batch().buffer)


def test_every_truncation_of_a_segment_is_rejected():
    for length in range(len(EXAMPLE)):
        with pytest.raises(DamagedObjectError, match=KEY):
            segment.read(KEY, EXAMPLE[:length])


def test_every_relevant_flipped_bit_is_rejected():
    for position, damaged in with_flipped_bits(EXAMPLE, but=[FLAGS, CREATED_AND_RESERVED]):
        with pytest.raises(DamagedObjectError):
            pytest.fail(f"{position}: {segment.read(KEY, damaged)}")


def test_unknown_flags_and_reserved_bits_are_ignored():
    positions = {*FLAGS, *CREATED_AND_RESERVED}
    others = [range(6), range(8, 20), range(32, len(EXAMPLE))]
    intact = segment.read(KEY, EXAMPLE)
    for position, damaged in with_flipped_bits(EXAMPLE, but=others):
        records = segment.read(KEY, damaged)
        assert [each.buffer for each in records.batches] == [each.buffer for each in intact.batches]
        positions.discard(position)
    assert not positions


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes are too few for the header"),
        (sealed(ONE)[:40], "8 bytes are too few for the footer"),
        (sealed(ONE, magic=b"KAFW"), "magic is b'KAFW'"),
        (sealed(ONE, version=2), "version 2 is unknown"),
        (sealed(ONE, base_offset=-1), "1 records from offset -1"),
        (sealed(ONE, count=0), "0 records from offset 0"),
        (sealed(ONE, count=2), "has 1 records, the header says 2"),
        (sealed(ONE, last_offset=1), "last offset is 0, the footer says 1"),
        (sealed(ONE, base_offset=1), "offset 0, expected at 1"),
        (sealed(ONE + ONE, count=2, last_offset=1), "offset 0, expected at 1"),
        (sealed(b"", count=1, last_offset=-1), "has 0 records"),
        (sealed(ONE[:23] + pack(">i", -1) + ONE[27:], last_offset=-1), "ends before it begins"),
        (sealed(ONE[:-1]), "beyond"),
        (sealed(ONE + bytes(8)), "beyond"),
        (sealed(ONE + bytes(100)), "magic 0"),
        (sealed(ONE)[:-1] + b"?", "end magic is b'END\\?'"),
    ],
)
def test_invalid_segment_is_rejected(data, reason):
    with pytest.raises(DamagedObjectError, match=reason):
        segment.read(KEY, data)


def test_error_contains_the_key():
    with pytest.raises(DamagedObjectError) as caught:
        segment.read(KEY, EXAMPLE[:-1])
    assert caught.value.key == KEY
    assert KEY in str(caught.value)


# --- salvage --------------------------------------------------------------------------------------

LONG = contiguous_batches(100, [1, 3, 2, 5])
STARTS = [32 + sum(map(len, LONG[:number])) for number in range(len(LONG) + 1)]


def salvaged(data: bytes) -> int:
    """How many batches are salvaged, once they are found to be the first ones."""
    result = segment.salvage(data)
    assert [each.buffer for each in result] == [each.buffer for each in LONG[: len(result)]]
    return len(result)


def test_whole_segment_is_salvaged_completely():
    assert salvaged(written(LONG)) == 4


@given(st.integers(0, STARTS[-1]))
def test_whole_batches_of_a_truncated_segment_are_salvaged(length):
    whole = sum(1 for start in STARTS[1:] if start <= length)
    assert salvaged(written(LONG)[:length]) == whole


@given(st.integers(32, STARTS[-1] - 1), st.integers(0, 7))
def test_batches_before_a_flipped_bit_are_salvaged(position, bit):
    damaged = bytearray(written(LONG))
    damaged[position] ^= 1 << bit
    before = sum(1 for start in STARTS[1:] if start <= position)
    in_batch = position - STARTS[before]
    if 12 <= in_batch < 16:
        return  # The leader epoch: outside of the checksum, and of no consequence to offsets.
    assert salvaged(bytes(damaged)) == before


def test_damaged_header_loses_no_batch():
    assert salvaged(b"?" * 32 + written(LONG)[32:]) == 4
    assert salvaged(b"?" * 31) == 0


def test_batches_with_unexpected_offsets_are_not_salvaged():
    body = bytes(LONG[0].buffer) + bytes(LONG[2].buffer)
    assert salvaged(sealed(body, base_offset=100)) == 1
    assert salvaged(sealed(body, base_offset=99)) == 0


# --- upstream -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", UPSTREAM_SEGMENTS, ids=lambda path: f"{path.parts[-3:]}")
def test_upstream_segments_are_read(path):
    data = path.read_bytes()
    records = segment.read(str(path), data)
    base_offset = int(path.stem.removeprefix("segment-"))
    assert records.header.base_offset == base_offset
    assert records.footer.last_offset == base_offset + records.header.count - 1
    assert records.header.flags == 0
    again = segment.Builder(
        records.header.created_ms, 4096, compression=None, prior_max_timestamp_ms=-1
    )
    for each in records.batches:
        again.append(each)
    parts = again.finish().parts
    # The one difference between the writers: ours says which codec all batches share.
    assert bytes(parts[0][:6]) == data[:6]
    assert bytes(parts[0][8:]) + joined(parts[1:]) == data[8:]


@pytest.mark.parametrize("path", UPSTREAM_SEGMENTS, ids=lambda path: f"{path.parts[-3:]}")
def test_rebuilt_indexes_equal_those_of_upstream(path):
    theirs = index.decode(str(path), path.with_suffix(".index").read_bytes())
    ours = index.rebuild(segment.read(str(path), path.read_bytes()).batches, 4096)
    assert ours.offsets == theirs.offsets
    assert ours.positions == theirs.positions
    # A reader of the specification's index reads ours to the same end.
    assert ours.encode()[: 16 + 12 * len(ours)] == path.with_suffix(".index").read_bytes()
