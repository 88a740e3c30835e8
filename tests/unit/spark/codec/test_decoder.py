"""Tests of the compiled decoder and of the reference decoder."""

import pickle
from struct import pack_into

import pyarrow as pa
import pytest

from doubles.reference_decoder import ReferenceDecoder
from kafscale.errors import BatchTooLargeError, DamagedObjectError
from kafscale.records import BatchView, Codec, Header, Record, build, recompress
from kafscale.spark.codec import columns
from kafscale.spark.codec.columns import ALL, ALL_WITH_HEADERS
from kafscale.spark.codec.decoder import Decoder
from unit.spark.codec.batch_samples import as_slices, with_payload

pytestmark = pytest.mark.timeout(120)  # The first test may compile the kernel.

EVERYTHING = 2**63
KEY = "ns/topic/0/segment-00000000000000000000.kfs"
RECORDS = [
    Record(10, 1_700_000_000_000, b"key", b"value", (Header("a", b"1"), Header("ü", None))),
    Record(11, 1_700_000_000_250, None, b""),
    Record(13, 1_699_999_999_000, b"", None, (Header("", b""),)),
    Record(17, -1, "ключ".encode(), b"v" * 300),
]


@pytest.fixture(params=[Decoder, ReferenceDecoder])
def decoder_type(request):
    return request.param


@pytest.fixture
def decode(decoder_type):
    def decode(*batches, selected=ALL_WITH_HEADERS, start=0, end=EVERYTHING, **options):
        bound = {key: options.pop(key) for key in list(options) if key.endswith("_max")}
        decoder = decoder_type(selected, **bound)
        decoded = decoder.decode(KEY, "topic", 3, batches, start, end, **options)
        decoded.validate(full=True)
        assert decoded.schema == selected.schema
        return decoded

    return decode


def batch_of(*records, **kind):
    return BatchView(build(records or RECORDS, **kind))


def offsets(decoded):
    return decoded.column("offset").to_pylist()


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_decode_fills_every_column(decode, codec):
    decoded = decode(batch_of(codec=codec))
    assert decoded.column("key").to_pylist() == [b"key", None, b"", "ключ".encode()]
    assert decoded.column("value").to_pylist() == [b"value", b"", None, b"v" * 300]
    assert decoded.column("topic").to_pylist() == ["topic"] * 4
    assert decoded.column("partition").to_pylist() == [3] * 4
    assert offsets(decoded) == [10, 11, 13, 17]
    times_us = decoded.column("timestamp").cast(pa.int64()).to_pylist()
    assert times_us == [1000 * record.timestamp_ms for record in RECORDS]
    assert decoded.column("timestampType").to_pylist() == [0] * 4
    assert decoded.column("headers").to_pylist() == [
        [{"key": "a", "value": b"1"}, {"key": "ü", "value": None}],
        None,
        [{"key": "", "value": b""}],
        None,
    ]


@pytest.mark.parametrize("name", columns.NAMES)
def test_decode_of_a_single_column(decode, name):
    alone = decode(batch_of(), selected=columns.parse(name))
    assert alone.column(name) == decode(batch_of()).column(name)


def test_decode_skips_records_outside_the_range(decode):
    batches = [batch_of(), batch_of(Record(18, 0, None, b"18"), Record(19, 0, None, b"19"))]
    assert offsets(decode(*batches, start=11, end=19)) == [11, 13, 17, 18]
    assert offsets(decode(*batches, start=14, end=15)) == []
    assert offsets(decode(*batches, start=12, end=12)) == []
    assert offsets(decode(*batches, start=-5, end=11)) == [10]
    assert offsets(decode(*batches, start=EVERYTHING)) == []


def test_decode_does_not_parse_batches_outside_the_range(decode):
    broken = with_payload(b"nonsense", 1, base_offset=5)
    last = batch_of()
    assert offsets(decode(broken, last, start=6)) == [10, 11, 13, 17]
    assert offsets(decode(broken, start=0, end=5)) == []
    with pytest.raises(DamagedObjectError):
        decode(broken, last, start=5)


def test_decode_skips_control_batches_but_not_transactional_ones(decode):
    marker = batch_of(Record(18, 0, b"\0\0\0\1", b"\0\0\0\0\0\0"), control=True, transactional=True)
    assert offsets(decode(batch_of(transactional=True), marker)) == [10, 11, 13, 17]


def test_decode_uses_log_append_time_for_all_records_of_a_batch(decode):
    batch = batch_of()
    batch.stamp_append_time(1_800_000_000_000)
    later = batch_of(Record(20, 7, None, None))
    decoded = decode(batch, later)
    times_us = decoded.column("timestamp").cast(pa.int64()).to_pylist()
    assert times_us == [1_800_000_000_000_000] * 4 + [7000]
    assert decoded.column("timestampType").to_pylist() == [1] * 4 + [0]


def test_decode_skips_whole_batches_before_a_timestamp(decode):
    batches = [
        batch_of(Record(0, 100, None, None), Record(1, 50, None, None)),
        batch_of(Record(2, 99, None, None)),
    ]
    assert offsets(decode(*batches, since_ms=100)) == [0, 1]
    assert offsets(decode(*batches, since_ms=99)) == [0, 1, 2]
    assert offsets(decode(*batches, since_ms=101)) == []


def test_decode_clamps_timestamps_that_overflow(decode):
    last = 2**63 - 1
    decoded = decode(batch_of(Record(0, last, None, None)), batch_of(Record(1, -last, None, None)))
    times_us = decoded.column("timestamp").cast(pa.int64()).to_pylist()
    assert times_us == [last // 1000 * 1000, -(last // 1000) * 1000]


def test_decode_replaces_invalid_utf8_in_header_keys(decode):
    """Two halves of a character in adjacent keys are two errors, not one character."""
    halves = bytes.fromhex("18 00 00 00 01 01 04 02c3 01 02a9 01")
    good = batch_of(Record(1, 0, None, None, (Header("é", None),)))
    decoded = decode(with_payload(halves, 1), good)
    names = [[header["key"] for header in row] for row in decoded.column("headers").to_pylist()]
    assert names == [["\N{REPLACEMENT CHARACTER}"] * 2, ["é"]]


def test_decode_accepts_batches_of_one_buffer_or_of_many(decode):
    batches = [batch_of(Record(index, index, b"k", b"%d" % index)) for index in range(5)]
    batches[2] = BatchView(recompress(batches[2], Codec.ZSTD))
    apart = decode(*batches)
    assert apart.column("value").to_pylist() == [b"0", b"1", b"2", b"3", b"4"]
    assert decode(*as_slices(batches)) == apart
    assert decode(*as_slices(batches[:2])) == apart.slice(0, 2)


def test_decoded_rows_do_not_depend_on_the_buffer(decode):
    batch = batch_of()
    decoded = decode(batch)
    before = decoded.to_pylist()
    batch.buffer[61:] = bytes(len(batch) - 61)
    assert decoded.to_pylist() == before


@pytest.mark.parametrize("size", [0, 1, 1023, 2**20])
def test_decode_of_values_of_any_size(decode, size):
    value = bytes(range(256)) * (size // 256 + 1)
    decoded = decode(batch_of(Record(0, 0, None, value[:size])), selected=ALL)
    assert decoded.column("value")[0].as_py() == value[:size]


def test_decode_of_no_records(decode):
    assert decode().num_rows == 0
    assert decode(with_payload(b"", 0)).num_rows == 0


def test_decode_of_the_greatest_offsets(decode):
    last = batch_of(Record(2**63 - 2, 0, None, None), Record(2**63 - 1, 0, None, None))
    assert offsets(decode(last)) == [2**63 - 2, 2**63 - 1]


@pytest.mark.parametrize("selected", ["offset", "value", "headers"])
@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (with_payload(b"\x10\x00\x00\x00\x01\x04a", 1), "does not fit its batch"),
        (
            with_payload(bytes.fromhex("0c 00 00 00 01 01 00 00"), 1),
            "extra bytes after the last record",
        ),
        (
            with_payload(bytes.fromhex("0c 00 00 00 01 01 00"), 2),
            "invalid record count 2 in a batch of 7 bytes",
        ),
        (with_payload(bytes.fromhex("0c 00 00 02 01 01 00"), 1), "offset delta 1 exceeds 0"),
        (with_payload(bytes.fromhex("10 00 00 00 01 01 02 01 01"), 1), "header key is null"),
        # Without comparing the fields with the length, two records would be found.
        (with_payload(bytes.fromhex("1a 00 00 00 01 01 00 0c 00 00 02 01 01 00"), 2), "by -7"),
        # Accepting a length of -2 would yield a record that ends at the right position.
        (with_payload(bytes.fromhex("0c 00 00 00 02 02 03"), 1), "a field of -2 bytes"),
        (with_payload(bytes.fromhex("16 00 00 808080808000 01 01 00"), 1), "exceeds 32 bits"),
        (with_payload(bytes.fromhex("14 00 00 8080808010 01 01 00"), 1), "exceeds 32 bits"),
        (with_payload(bytes.fromhex("1e 00 80808080808080808002 00 01 01 00"), 1), "64 bits"),
        (with_payload(bytes.fromhex("20 00 8080808080808080808000 00 01 01 00"), 1), "64 bits"),
        (with_payload(b"", -1), "invalid record count -1"),
        (with_payload(b"", 0, base_offset=-1), "invalid offsets"),
        (with_payload(b"", 0, last_offset_delta=-1), "invalid offsets"),
        (with_payload(b"", 0, base_offset=2**63 - 1, last_offset_delta=1), "invalid offsets"),
        (with_payload(b"abc", 1, attributes=4), "corrupt compressed records"),
        (with_payload(b"abc", 1, attributes=5), "codec 5 is unknown"),
    ],
)
def test_errors_name_the_object_and_the_reason(decode, batch, reason, selected):
    with pytest.raises(DamagedObjectError, match=reason) as raised:
        decode(batch_of(), batch, selected=columns.parse(selected))
    assert raised.value.key == KEY


def test_decode_verifies_checksums_of_skipped_batches(decode):
    """The offsets and timestamps by which a batch is skipped may be corrupt."""
    batch = batch_of()
    pack_into(">i", batch.buffer, 23, 1)  # Its last offset would be 11.
    with pytest.raises(DamagedObjectError, match="CRC"):
        decode(batch, start=15)


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_decode_rejects_batches_that_decompress_beyond_the_limit(decode, codec):
    batch = batch_of(Record(0, 0, None, bytes(10_000)), codec=codec)
    assert decode(batch, decompressed_bytes_max=11_000).num_rows == 1
    with pytest.raises(DamagedObjectError, match="decompress to more than 9000 bytes"):
        decode(batch, decompressed_bytes_max=9000)


def test_decoder_can_be_pickled(decoder_type):
    decoder = pickle.loads(pickle.dumps(decoder_type(ALL)))  # noqa: S301
    assert offsets(decoder.decode(KEY, "topic", 0, [batch_of()], 11, 17)) == [11, 13]


def test_parts_are_bounded_by_decompressed_bytes():
    batches = [
        batch_of(Record(offset, 0, None, bytes(10_000)), codec=Codec.ZSTD) for offset in range(5)
    ]
    decoder = Decoder(ALL)
    parts = decoder.decode_in_parts(KEY, "topic", 0, batches, 0, 5, part_bytes=20_000)
    assert [offsets(part) for part in parts] == [[0, 1], [2, 3], [4]]


def test_decode_rejects_more_bytes_than_arrow_can_index():
    """All batches are the same object, so that they take little memory."""
    batches = [with_payload(bytes(2**26), 1)] * 33
    with pytest.raises(BatchTooLargeError, match="at once"):
        Decoder(ALL).decode(KEY, "topic", 0, batches, 0, 1)
