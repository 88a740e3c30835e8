"""Segments: layout as specified, with the batches unchanged."""

from random import Random
from struct import pack

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kafscale import records
from kafscale.records import BatchView, Codec, Record, iterate
from kafscale.storage.formats import index, segment
from unit.storage.samples import CREATED_MS, batch, batch_lists, contiguous_batches, joined

KEY = "default/orders/0/segment-00000000000000050000.kfs"
INTERVAL_BYTES = 4096
CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


def build(batches, *, compression=None, prior_ms=-1, sections=None) -> segment.Built:
    builder = segment.Builder(
        CREATED_MS, INTERVAL_BYTES, compression=compression, prior_max_timestamp_ms=prior_ms
    )
    for each in batches:
        builder.append(each)
    assert builder.size_bytes == 48 + sum(map(len, builder._parts))
    assert builder.count == sum(each.count for each in batches)
    return builder.finish(sections)


def test_golden_header():
    golden = "4b414653 0001 0000 000000000000c350 00000003 0000018bcfe56800 00000000"
    header = segment.Header(base_offset=50_000, count=3, created_ms=1_700_000_000_000)
    assert header.encode() == bytes.fromhex(golden)
    assert segment.decode_header(KEY, header.encode()) == header


def test_golden_footer():
    golden = "e3069283 000000000000c352 454e4421"
    footer = segment.Footer(crc32c(b"123456789"), 50_002)
    assert footer.encode() == bytes.fromhex(golden)
    assert segment.decode_footer(KEY, footer.encode()) == footer


def test_layout_follows_the_specification():
    batches = contiguous_batches(50_000, [2, 1])
    built = build(batches)
    body = b"".join(each.buffer for each in batches)
    header = b"KAFS" + pack(">hHqiqi", 1, 0, 50_000, 3, CREATED_MS, 0)
    assert joined(built.parts) == header + body + pack(">Iq", crc32c(body), 50_002) + b"END!"


@given(batch_lists(), st.sampled_from([None, *Codec]), st.integers(-1, 2**42))
def test_round_trip(batches, compression, prior_ms):
    sections = {b"PROD": b"state", b"EPOC": b""}
    built = build(batches, compression=compression, prior_ms=prior_ms, sections=sections)
    data = joined(built.parts)
    assert built.size_bytes == len(data)
    result = segment.read(KEY, data)
    assert result.header.base_offset == built.base_offset == batches[0].base_offset
    assert result.footer.last_offset == built.last_offset == batches[-1].last_offset
    assert result.header.count == built.count == sum(each.count for each in batches)
    assert result.header.created_ms == CREATED_MS
    assert built.max_timestamp_ms == max(each.max_timestamp_ms for each in batches)
    assert len(result.batches) == len(batches)
    for stored, sent in zip(result.batches, batches, strict=True):
        assert list(iterate(stored)) == list(iterate(sent))
        stored.validate()


@given(batch_lists(), st.sampled_from([None, *CODECS]))
def test_index_points_to_batches(batches, compression):
    built = build(batches, compression=compression, prior_ms=77, sections={b"PROD": b"state"})
    data = joined(built.parts)
    stored = segment.read(KEY, data).batches
    written = index.decode(KEY, built.index)
    again = index.rebuild(stored, INTERVAL_BYTES, prior_max_timestamp_ms=77)
    again.sections[b"PROD"] = b"state"
    assert written.encode() == again.encode()
    assert written.offsets[0] == built.base_offset
    for offset, position in zip(written.offsets, written.positions, strict=True):
        (base_offset,) = [each.base_offset for each in stored if each.base_offset == offset]
        assert data[position : position + 8] == pack(">q", base_offset)


def test_compressed_batches_are_stored_unchanged():
    batches = [batch(index, codec=codec, value=b"v" * 99) for index, codec in enumerate(CODECS)]
    built = build(batches, compression=Codec.ZSTD)
    for part, sent in zip(built.parts[1:-1], batches, strict=True):
        assert part == sent.buffer
        assert part.obj is sent.buffer.obj


@pytest.mark.parametrize("codec", CODECS)
def test_uncompressed_batches_are_compressed(codec):
    sent = batch(7, 20, value=b"v" * 100)
    built = build([sent], compression=codec)
    (stored,) = segment.read(KEY, joined(built.parts)).batches
    assert stored.codec is codec
    assert len(stored) < len(sent)
    for name in ("base_offset", "count", "producer_id", "base_sequence", "max_timestamp_ms"):
        assert getattr(stored, name) == getattr(sent, name)
    assert sent.codec is Codec.NONE


@pytest.mark.parametrize(
    ("sent", "compression"),
    [
        (batch(value=b"v" * 100), None),
        (batch(value=b"v" * 100), Codec.NONE),
        (batch(value=b""), Codec.GZIP),
        (batch(value=b"v" * 100, control=True), Codec.GZIP),
    ],
    ids=["not asked for", "none", "not worth it", "control"],
)
def test_batches_that_stay_uncompressed(sent, compression):
    built = build([sent], compression=compression)
    assert built.parts[1] == sent.buffer
    assert built.parts[1].obj is sent.buffer.obj


@pytest.mark.parametrize(
    ("codecs", "flags"),
    [
        ([Codec.NONE], 0),
        ([Codec.GZIP, Codec.GZIP], 1),
        ([Codec.ZSTD], 4),
        ([Codec.GZIP, Codec.SNAPPY], 0),
        ([Codec.NONE, Codec.LZ4], 0),
    ],
)
def test_flags_contain_the_common_codec(codecs, flags):
    built = build([batch(index, codec=codec) for index, codec in enumerate(codecs)])
    assert segment.decode_header(KEY, built.parts[0]).flags == flags


def test_negative_timestamps_are_kept():
    built = build([batch(0, timestamp_ms=-1), batch(1, timestamp_ms=-1)])
    assert built.max_timestamp_ms == -1
    assert index.decode(KEY, built.index).log_max_timestamp_ms == -1


def test_builder_asserts_contiguous_offsets():
    with pytest.raises(AssertionError, match="contiguous"):
        build([batch(0), batch(2)])


def test_builder_asserts_at_least_one_batch():
    with pytest.raises(AssertionError):
        build([])


def test_batch_fits_up_to_the_limits_of_the_format():
    builder = segment.Builder(CREATED_MS, 1, compression=None, prior_max_timestamp_ms=-1)
    huge = batch(0)
    pack_count = pack(">i", segment.RECORD_COUNT_MAX - 1)
    huge.buffer[57:61] = pack_count
    builder.append(huge)
    assert not fits(builder, batch(1, 2))
    assert fits(builder, batch(1, 1))


def test_segment_stays_below_2_gib():
    builder = segment.Builder(CREATED_MS, 1, compression=None, prior_max_timestamp_ms=-1)
    builder.size_bytes = segment.SEGMENT_BYTES_MAX - len(batch()) + 1
    assert not fits(builder, batch())
    with pytest.raises(AssertionError):
        builder.append(BatchView(batch().buffer))
    builder.size_bytes -= 1
    assert fits(builder, batch())


def fits(builder: segment.Builder, one: BatchView) -> bool:
    return builder.extend(one.buffer, (0, len(one)))


def test_incompressible_batches_are_tried_less_often():
    """Pictures do not get smaller; text among them still does, once it comes again and again."""
    random = Random(7)
    values = [random.randbytes(500) for _ in range(40)] + [b"text " * 100] * 40
    batches = [
        stamped(records.build([Record(offset=0, timestamp_ms=1, key=None, value=value)]), offset)
        for offset, value in enumerate(values)
    ]
    built = build(batches, compression=Codec.SNAPPY)
    codecs = [each.codec for each in segment.read(KEY, b"".join(built.parts)).batches]
    first = codecs.index(Codec.SNAPPY)
    assert 40 <= first <= 40 + segment.UNTRIED_COUNT_MAX
    assert set(codecs[first:]) == {Codec.SNAPPY}


def stamped(data: bytes, offset: int) -> BatchView:
    created = BatchView(bytearray(data))
    created.stamp(offset, 0)
    return created
