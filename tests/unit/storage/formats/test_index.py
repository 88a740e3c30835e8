"""Indexes: density, lookup by offset and timestamp, upstream format, and damage."""

from array import array
from struct import pack, unpack_from

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import DamagedObjectError
from kafscale.storage.formats import index
from kafscale.storage.formats.index import Index
from unit.storage.samples import (
    UPSTREAM_SEGMENTS,
    batch,
    batch_lists,
    contiguous_batches,
    with_flipped_bits,
)

KEY = "default/orders/0/segment-00000000000000000000.index"
INTERVAL_BYTES = 4096


def entries(found: Index) -> list[tuple[int, int]]:
    return list(zip(found.offsets, found.positions, strict=True))


def example() -> Index:
    return Index(
        array("q", [10, 20, 35]),
        array("i", [32, 4200, 9000]),
        array("q", [1000, 3000, 2000]),
        500,
        {b"PROD": b"state"},
    )


def plain(pairs: list[tuple[int, int]], *, magic: bytes = b"IDX\0", count: int | None = None):
    """An index as upstream writes it, written independently of the code under test."""
    header = magic + pack(">hiih", 1, len(pairs) if count is None else count, 100, 0)
    return header + b"".join(pack(">qi", *pair) for pair in pairs)


def same(one: Index, other: Index) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in Index.__slots__)


# --- density --------------------------------------------------------------------------------------


@given(batch_lists(), st.integers(64, 20_000))
def test_entry_density(batches, interval_bytes):
    result = index.rebuild(batches, interval_bytes)
    expected, position, entry_position, records = [], 32, 0, 0
    for each in batches:
        if not expected or position - entry_position >= interval_bytes or records >= 100:
            expected.append((each.base_offset, position))
            entry_position, records = position, 0
        position += len(each)
        records += each.count
    assert entries(result) == expected


def test_entry_is_added_after_the_interval_or_100_records():
    one = len(batch())
    by_records = index.rebuild(contiguous_batches(0, [99, 1, 1, 100, 1]), 1 << 30)
    assert list(by_records.offsets) == [0, 100, 201]
    by_bytes = index.rebuild(contiguous_batches(0, [1] * 6), 2 * one)
    assert entries(by_bytes) == [(0, 32), (2, 32 + 2 * one), (4, 32 + 4 * one)]
    by_bytes = index.rebuild(contiguous_batches(0, [1] * 6), 2 * one + 1)
    assert list(by_bytes.offsets) == [0, 3]


@given(batch_lists(), st.integers(-1, 2**42))
def test_timestamps_are_the_maximum_up_to_the_next_entry(batches, prior_ms):
    result = index.rebuild(batches, 300, prior_max_timestamp_ms=prior_ms)
    bounds = [*result.offsets, batches[-1].next_offset]
    assert result.max_timestamps is not None
    for number, greatest in enumerate(result.max_timestamps):
        covered = [b for b in batches if bounds[number] <= b.base_offset < bounds[number + 1]]
        assert greatest == max(b.max_timestamp_ms for b in covered)
    greatest = max(b.max_timestamp_ms for b in batches)
    assert result.max_timestamp_ms == greatest
    assert result.log_max_timestamp_ms == max(prior_ms, greatest)


# --- finding --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "entry"), [(0, 0), (9, 0), (10, 0), (19, 0), (20, 1), (34, 1), (35, 2), (9999, 2)]
)
def test_find_returns_the_last_entry_at_or_below_the_offset(offset, entry):
    assert example().find(offset) == entry


@pytest.mark.parametrize(
    ("timestamp_ms", "entry"), [(-1, 0), (1000, 0), (1001, 1), (2000, 1), (3000, 1), (3001, None)]
)
def test_find_time_returns_the_first_entry_that_reaches_the_timestamp(timestamp_ms, entry):
    assert example().find_time(timestamp_ms) == entry


def test_without_timestamps_the_first_entry_is_returned():
    decoded = index.decode(KEY, plain([(10, 32), (20, 99)]))
    assert decoded.max_timestamps is None
    assert decoded.max_timestamp_ms is None
    assert decoded.log_max_timestamp_ms is None
    assert decoded.find_time(1000) == 0


def test_log_max_timestamp_is_unknown_without_the_prior_one():
    decoded = index.decode(
        KEY, index.rebuild(contiguous_batches(0, [1, 1]), INTERVAL_BYTES).encode()
    )
    assert decoded.prior_max_timestamp_ms is None
    assert decoded.max_timestamp_ms is not None
    assert decoded.log_max_timestamp_ms is None


def test_cost_bytes_includes_sections_and_timestamps():
    small = index.rebuild(contiguous_batches(0, [1]), INTERVAL_BYTES)
    large = index.rebuild(contiguous_batches(0, [100] * 100), INTERVAL_BYTES)
    assert large.cost_bytes - small.cost_bytes == 99 * 20
    kept = Index(small.offsets, small.positions, small.max_timestamps, -1, {b"PROD": bytes(500)})
    assert kept.cost_bytes - small.cost_bytes == 500
    assert small.cost_bytes > 0


# --- bytes ----------------------------------------------------------------------------------------


@given(
    batch_lists(),
    st.none() | st.integers(-1, 2**62),
    st.dictionaries(
        st.binary(min_size=4, max_size=4).filter(
            lambda magic: magic not in {b"TIME", b"SIZE", b"CSUM"}
        ),
        st.binary(max_size=50),
    ),
)
def test_round_trip(batches, prior_ms, sections):
    built = index.rebuild(batches, 300, prior_max_timestamp_ms=prior_ms)
    built.sections.update(sections)
    decoded = index.decode(KEY, built.encode())
    assert same(decoded, built)
    assert decoded.encode() == built.encode()


def test_header_and_entries_follow_the_specification():
    data = example().encode()
    assert data[:16].hex(" ", -4) == "49445800 00010000 00030000 00640000"
    assert data.startswith(plain([(10, 32), (20, 4200), (35, 9000)]))
    assert data[52:60] == b"TIME" + pack(">I", 32)
    assert unpack_from(">4q", data, 60) == (500, 1000, 3000, 2000)
    assert data[92:105] == b"PROD" + pack(">I", 5) + b"state"
    assert data[105:113] == b"CSUM" + pack(">I", 4)
    assert len(data) == 117


@pytest.mark.parametrize("magic", [b"IDX\0", b"IDX\n"])
def test_both_magics_are_read(magic):
    assert entries(index.decode(KEY, plain([(5, 32), (9, 400)], magic=magic))) == [
        (5, 32),
        (9, 400),
    ]


@pytest.mark.parametrize("path", UPSTREAM_SEGMENTS, ids=lambda path: f"{path.parts[-3:]}")
def test_upstream_indexes_are_read(path):
    decoded = index.decode(str(path), path.with_suffix(".index").read_bytes())
    assert entries(decoded) == [(int(path.stem.removeprefix("segment-")), 32)]
    assert decoded.sections == {}


def test_upstream_fixtures_exist():
    assert len(UPSTREAM_SEGMENTS) == 16


@given(batch_lists(), batch_lists())
def test_verify_accepts_only_the_own_segment(batches, others):
    result = index.rebuild(batches, 300)
    index.verify(KEY, result, batches)
    if others[0].base_offset != batches[0].base_offset:
        with pytest.raises(DamagedObjectError, match="no batch of the segment at 32"):
            index.verify(KEY, result, others)


def test_verify_rejects_an_entry_within_a_batch():
    batches = contiguous_batches(0, [1, 1])
    result = Index(array("q", [0, 1]), array("i", [32, 33 + len(batches[0])]))
    with pytest.raises(DamagedObjectError, match="with offset 1"):
        index.verify(KEY, result, batches)


# --- damage ---------------------------------------------------------------------------------------


def test_every_truncation_is_rejected_except_to_an_upstream_index():
    data = example().encode()
    for length in range(len(data)):
        if length == 16 + 3 * 12:
            assert entries(index.decode(KEY, data[:length])) == entries(example())
            continue
        with pytest.raises(DamagedObjectError, match=KEY):
            pytest.fail(f"{length}: {index.decode(KEY, data[:length])}")


def test_every_flipped_bit_is_rejected():
    for position, damaged in with_flipped_bits(example().encode()):
        with pytest.raises(DamagedObjectError):
            pytest.fail(f"{position}: {index.decode(KEY, damaged)}")


def test_flipped_bit_in_an_upstream_index_is_rejected_or_leaves_it_ascending():
    for _, damaged in with_flipped_bits(plain([(10, 32), (20, 4200), (35, 9000)])):
        try:
            decoded = index.decode(KEY, damaged)
        except DamagedObjectError:
            continue
        assert list(decoded.offsets) == sorted(set(decoded.offsets))
        assert list(decoded.positions) == sorted(set(decoded.positions))
        assert decoded.positions[0] == 32
        assert len(decoded) == 3


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes are too few"),
        (plain([(0, 32)], magic=b"\0IDX"), "magic is"),
        (b"IDX\0" + pack(">hiihqi", 2, 1, 100, 0, 0, 32), "version 2 is unknown"),
        (plain([]), "cannot hold 0 entries"),
        (plain([(0, 32)], count=-1), "cannot hold -1 entries"),
        (plain([(0, 32)], count=2), "cannot hold 2 entries"),
        (plain([(0, 33)]), "first entry is at 33"),
        (plain([(0, 32), (0, 99)]), "do not ascend"),
        (plain([(5, 32), (4, 99)]), "do not ascend"),
        (plain([(0, 32), (9, 32)]), "do not ascend"),
        (plain([(0, 32), (9, 99), (10, -1)]), "do not ascend"),
        (plain([(-1, 32)]), "do not ascend"),
        (plain([(0, 32)]) + b"PROD\0\0\0\0", "no checksum"),
        (plain([(0, 32)]) + b"?", "no checksum"),
    ],
)
def test_invalid_index_is_rejected(data, reason):
    with pytest.raises(DamagedObjectError, match=reason):
        index.decode(KEY, data)


def proven(data: bytes) -> bytes:
    """The data with a checksum that holds."""
    return data + b"CSUM" + pack(">II", 4, index.crc32c(data))


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        (b"PROD", "within a section header"),
        (b"PROD" + pack(">I", 3) + b"12", "within section b'PROD'"),
        (b"PROD" + pack(">I", 2) + b"12PROD" + pack(">I", 0), "duplicate section b'PROD'"),
        (b"CSUM" + pack(">II", 4, 0), "duplicate section b'CSUM'"),
        (b"TIME" + pack(">I", 8) + bytes(8), "8 bytes of timestamps do not fit 1 entries"),
        (b"TIME" + pack(">Iqq", 16, -3, 0), "invalid prior timestamp -3"),
    ],
)
def test_inconsistent_sections_are_rejected(sections, reason):
    with pytest.raises(DamagedObjectError, match=reason):
        index.decode(KEY, proven(plain([(0, 32)]) + sections))
