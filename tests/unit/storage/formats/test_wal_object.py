"""WAL objects: round trip, ranges, fences and damage."""

from struct import pack

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kafscale.errors import DamagedObjectError
from kafscale.records import split
from kafscale.storage.formats import wal_object
from kafscale.storage.formats.wal_object import Header, PartitionData
from unit.storage.samples import CREATED_MS, batch, contiguous_batches, joined, with_flipped_bits

HEADER = Header(broker_id=7, epoch=3, sequence=42, created_ms=CREATED_MS, trimmed_to=40)
FENCE = Header(broker_id=7, epoch=3, sequence=43, created_ms=CREATED_MS, is_fence=True)
KEY = "default/_wal/7/0000000003/00000000000000000042.kfw"


def topic_id(topic: str) -> bytes:
    return topic.encode()[:16].ljust(16, b"\0")


def piece(
    topic: str, partition: int, base_offset: int, count: int, timestamp_ms: int
) -> PartitionData:
    body = batch(base_offset, count, timestamp_ms=timestamp_ms).buffer
    last_offset = base_offset + count - 1
    return PartitionData(
        topic_id(topic), topic, partition, body, base_offset, last_offset, timestamp_ms
    )


@st.composite
def piece_lists(draw):
    """Pieces of several partitions, mixed; those of one partition are contiguous."""
    names = st.sampled_from(("orders", "größe", "a" * 249))
    next_offsets: dict[tuple[str, int], int] = {}
    pieces = []
    for _ in range(draw(st.integers(1, 12))):
        place = draw(st.tuples(names, st.integers(0, 3)))
        base_offset = next_offsets.setdefault(place, draw(st.integers(0, 2**62)))
        count = draw(st.integers(1, 5))
        pieces.append(piece(*place, base_offset, count, draw(st.integers(0, 2**42))))
        next_offsets[place] += count
    return pieces


def example() -> bytes:
    pieces = [piece("orders", 1, 500, 2, 1000), piece("clicks", 0, 10, 1, 3000)]
    return joined(wal_object.encode(HEADER, pieces))


@given(piece_lists())
def test_each_partition_has_one_range_with_its_batches_in_order(pieces):
    read = wal_object.decode(KEY, joined(wal_object.encode(HEADER, pieces)))
    assert read.header == HEADER
    places = sorted({(piece.topic, piece.partition) for piece in pieces})
    assert [(result.topic, result.partition) for result in read.ranges] == places
    for result in read.ranges:
        own = [p for p in pieces if (p.topic, p.partition) == (result.topic, result.partition)]
        assert read.body(result) == joined([piece.body for piece in own])
        assert result.topic_id == own[0].topic_id
        assert result.base_offset == own[0].base_offset
        assert result.last_offset == own[-1].last_offset
        assert result.max_timestamp_ms == max(piece.max_timestamp_ms for piece in own)
        assert len(split(read.body(result))) == len(own)


@given(piece_lists(), st.data())
def test_ranges_with_transactions_come_first_and_are_known(pieces, data):
    marked = [structs.replace(each, is_transactional=data.draw(st.booleans())) for each in pieces]
    expected = {(each.topic, each.partition) for each in marked if each.is_transactional}
    encoded = joined(wal_object.encode(HEADER, marked))
    ranges = wal_object.decode(KEY, encoded).ranges
    found = {(each.topic, each.partition) for each in ranges if each.is_transactional}
    assert found == expected
    assert [each.is_transactional for each in ranges] == sorted(
        (each.is_transactional for each in ranges), reverse=True
    )
    assert wal_object.decode_footer(KEY, encoded, len(encoded)) == ranges


def test_bodies_are_not_copied():
    pieces = [piece("orders", 0, 0, 3, 1000), piece("orders", 1, 0, 3, 1000)]
    parts = wal_object.encode(HEADER, pieces)
    assert [id(part) for part in parts[1:-1]] == [id(piece.body) for piece in pieces]


def test_layout_follows_the_module_docstring():
    body = batch(5, 2, timestamp_ms=9).buffer
    data = joined(wal_object.encode(HEADER, [PartitionData(b"i" * 16, "t", 1, body, 5, 6, 9)]))
    table = b"i" * 16 + pack(">iqqqqh", 1, len(body), 5, 6, 9, 1) + b"t"
    header = b"KAFW" + pack(">hhiqqqqII", 3, 0, 7, 3, 42, CREATED_MS, 40, 55, crc32c(table))
    header += pack(">I", crc32c(header))
    covered = header + table + bytes(body) + table + header
    assert data == covered + pack(">I", crc32c(covered)) + b"END!"


def test_topics_with_the_same_name_are_separate():
    first, second = piece("orders", 0, 90, 2, 1), piece("orders", 0, 0, 1, 2)
    other_id = PartitionData(b"\xff" * 16, "orders", 0, second.body, 0, 0, 2)
    read = wal_object.decode(KEY, joined(wal_object.encode(HEADER, [other_id, first])))
    assert [(result.topic_id, result.base_offset) for result in read.ranges] == [
        (first.topic_id, 90),
        (other_id.topic_id, 0),
    ]


def test_encode_asserts_contiguous_offsets():
    with pytest.raises(AssertionError, match="contiguous"):
        wal_object.encode(HEADER, [piece("orders", 0, 0, 3, 1), piece("orders", 0, 4, 1, 1)])


def test_fence_is_empty():
    read = wal_object.decode(KEY, joined(wal_object.encode_empty(FENCE)))
    assert read.header == FENCE
    assert read.ranges == []


def test_header_can_be_decoded_alone():
    assert wal_object.decode_header(KEY, example()[: wal_object.HEADER_BYTES]) == HEADER
    assert wal_object.decode_header(KEY, example()[-wal_object.FOOTER_BYTES :]) == HEADER


# --- the tail -------------------------------------------------------------------------------------


@given(piece_lists(), st.integers(0, 2000))
def test_footer_returns_the_ranges_or_the_number_of_bytes_needed(pieces, suffix_bytes):
    data = joined(wal_object.encode(HEADER, pieces))
    result = wal_object.decode_footer(
        KEY, data[len(data) - min(suffix_bytes, len(data)) :], len(data)
    )
    requests = 1
    while isinstance(result, int):
        assert suffix_bytes < result <= len(data)
        suffix_bytes = result
        result = wal_object.decode_footer(KEY, data[-result:], len(data))
        requests += 1
    assert result == wal_object.decode(KEY, data).ranges
    assert requests <= 3


def test_footer_hint_suffices_for_hundreds_of_partitions():
    pieces = [piece("a-topic-of-usual-length", partition, 0, 1, 1) for partition in range(500)]
    data = joined(wal_object.encode(HEADER, pieces))
    result = wal_object.decode_footer(KEY, data[-wal_object.TAIL_BYTES_HINT :], len(data))
    assert isinstance(result, list)
    assert len(result) == 500


# --- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [example(), joined(wal_object.encode_empty(FENCE))])
def test_every_truncation_of_a_wal_object_is_rejected(data):
    for length in range(len(data)):
        with pytest.raises(DamagedObjectError, match=KEY):
            wal_object.decode(KEY, data[:length])


@pytest.mark.parametrize("data", [example(), joined(wal_object.encode_empty(FENCE))])
def test_every_flipped_bit_of_a_wal_object_is_rejected(data):
    for position, damaged in with_flipped_bits(data):
        with pytest.raises(DamagedObjectError):
            pytest.fail(f"{position}: {wal_object.decode(KEY, damaged)}")


def test_flipped_bits_never_hide_which_offsets_an_object_had():
    data = example()
    expected = HEADER, wal_object.decode(KEY, data).ranges
    for position, damaged in with_flipped_bits(data):
        assert wal_object.salvage(KEY, damaged) == expected, position


def test_lost_end_never_hides_which_offsets_an_object_had():
    data = example()
    read = wal_object.decode(KEY, data)
    for length in range(read.ranges[0].position, len(data)):
        assert wal_object.salvage(KEY, data[:length]) == (HEADER, read.ranges)


def test_object_with_two_damaged_copies_is_rejected():
    data = bytearray(example())
    data[0] ^= 1
    data[-wal_object.FOOTER_BYTES] ^= 1
    with pytest.raises(DamagedObjectError, match="magic"):
        wal_object.salvage(KEY, data)


def test_footer_of_a_truncated_object_is_rejected():
    data = example()
    tail_bytes = len(data) - wal_object.decode(KEY, data).ranges[-1].position
    for cut in range(1, tail_bytes - wal_object.FOOTER_BYTES):
        suffix = data[-tail_bytes:-cut]
        with pytest.raises(DamagedObjectError):
            pytest.fail(str(wal_object.decode_footer(KEY, suffix, len(data) - cut)))


def test_flipped_bits_of_the_tail_are_rejected_without_the_rest():
    data = example()
    end = wal_object.decode(KEY, data).ranges[-1]
    tail_bytes = len(data) - end.position - end.length
    for position, damaged in with_flipped_bits(data[-tail_bytes:-8]):
        suffix = damaged + data[-8:]
        with pytest.raises(DamagedObjectError):
            pytest.fail(f"{position}: {wal_object.decode_footer(KEY, suffix, len(data))}")


def sealed(bodies: bytes, table: bytes, flags: int = 0, table_length: int | None = None) -> bytes:
    """An object whose checksums hold, whatever its table says."""
    length = len(table) if table_length is None else table_length
    header = b"KAFW" + pack(">hhiqqqqII", 3, flags, 7, 3, 42, CREATED_MS, 0, length, crc32c(table))
    header += pack(">I", crc32c(header))
    covered = header + table + bodies + table + header
    return covered + pack(">I", crc32c(covered)) + b"END!"


def row(*, length=10, base_offset=0, last_offset=0, name=b"t", name_length=1):
    return bytes(16) + pack(">iqqqqh", 0, length, base_offset, last_offset, 1, name_length) + name


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (sealed(bytes(10), row(length=9)), "240 bytes, expected 239"),
        (sealed(bytes(10), row(length=11)), "240 bytes, expected 241"),
        (sealed(b"", row(length=0)), "range of 0 bytes"),
        (sealed(bytes(10), row(base_offset=2, last_offset=1)), "range: 2 to 1"),
        (sealed(bytes(10), row(base_offset=-1)), "range: -1 to 0"),
        (sealed(bytes(10), row(name=b"\xff")), "not valid UTF-8"),
        (sealed(bytes(10), row(name_length=2)), "within a name of 2 bytes"),
        (sealed(bytes(10), row(name_length=-1)), "within a name of -1 bytes"),
        (sealed(bytes(10), row() + bytes(53)), "within a row"),
        (sealed(bytes(10), row(), flags=1), "a fence with 1 ranges"),
        (sealed(bytes(10), b""), "130 bytes, expected 120"),
        (sealed(b"", b"", table_length=1), "checksum mismatch in the table"),
        (sealed(b"", b"", table_length=2**32 - 1), "bytes of a table of 4294967295 bytes"),
    ],
)
def test_inconsistent_table_is_rejected(data, reason):
    with pytest.raises(DamagedObjectError, match=reason):
        wal_object.decode(KEY, data)
    with pytest.raises(DamagedObjectError):
        pytest.fail(str(wal_object.decode_footer(KEY, data, len(data))))


def test_body_of_a_range_contains_whole_batches():
    batches = contiguous_batches(100, [3, 1, 2])
    pieces = [
        PartitionData(
            topic_id("t"), "t", 0, b.buffer, b.base_offset, b.last_offset, b.max_timestamp_ms
        )
        for b in batches
    ]
    read = wal_object.decode(KEY, joined(wal_object.encode(HEADER, pieces)))
    (result,) = read.ranges
    assert (result.base_offset, result.last_offset) == (100, 105)
    assert [b.base_offset for b in split(read.body(result))] == [100, 103, 104]
