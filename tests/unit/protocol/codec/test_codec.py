"""Generated codecs: golden bytes for each construct, in flexible and other versions."""

import struct
from typing import Annotated

import msgspec
import pytest

from kafscale.errors import EncodeError, ProtocolError
from kafscale.protocol.codec import varint
from kafscale.protocol.codec.codec import codec
from kafscale.protocol.codec.wire import (
    UUID_ZERO,
    Boolean,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    RecordSlices,
    String,
    UInt16,
    UInt32,
    Uuid,
    nullable,
    since,
    tag,
    until,
)


class Scalars(Message):
    int8: Int8 = 0
    int16: Int16 = 0
    uint16: UInt16 = 0
    int32: Int32 = 0
    uint32: UInt32 = 0
    int64: Int64 = 0
    float64: Float64 = 0.0
    boolean: Boolean = False
    uuid: Uuid = UUID_ZERO


class Inner(Message):
    number: Int16 = 0


class Everything(Message):
    """One of each; version 0 and 1 stand for the old family, 2 and 3 for the flexible one."""

    name: String = ""
    note: Annotated[String | None, nullable(since=1)] = None
    blob: Bytes = b""
    numbers: list[Int32] = []
    names: list[String] | None = None
    ids: list[Uuid] = []
    inner: Inner = msgspec.field(default_factory=Inner)
    inners: list[Inner] = []
    perhaps: Annotated[Inner | None, since(1)] = None
    dropped: Annotated[Int8, until(2)] = 7
    level: Annotated[Int32, tag(0, since=2)] = -1
    extra: Annotated[Inner | None, tag(1, since=2)] = None
    labels: Annotated[list[String], tag(2, since=3)] = []


def full() -> Everything:
    return Everything(
        name="näme",
        note="note",
        blob=b"\x01\x02",
        numbers=[1, -1],
        names=["a", "b"],
        ids=[bytes(range(16))],
        inner=Inner(5),
        inners=[Inner(6), Inner(7)],
        perhaps=Inner(8),
        dropped=9,
        level=3,
        extra=Inner(10),
        labels=["x"],
    )


def test_scalars_are_packed_big_endian():
    message = Scalars(-1, -2, 65535, -3, 2**32 - 1, -4, 1.5, True, bytes(range(16)))
    expected = struct.pack(
        ">bhHiIqd?16s", -1, -2, 65535, -3, 2**32 - 1, -4, 1.5, True, bytes(range(16))
    )
    assert codec(Scalars, 0, flexible=False).encode_bytes(message) == expected
    assert codec(Scalars, 0, flexible=False).decode(expected) == message
    assert codec(Scalars, 0, flexible=True).encode_bytes(message) == expected + b"\0"


def test_nonzero_byte_decodes_as_true():
    decoded = codec(Scalars, 0, flexible=False).decode(bytes(29) + b"\x02" + bytes(16))
    assert decoded.boolean is True


def test_non_flexible_lengths_are_int16_and_int32():
    encoded = codec(Everything, 1, flexible=False).encode_bytes(full())
    assert encoded == bytes.fromhex(
        "0005"
        "6ec3a46d65"
        "0004"
        "6e6f7465"
        "00000002"
        "0102"
        "00000002"
        "00000001"
        "ffffffff"
        "00000002"
        "0001"
        "61"
        "0001"
        "62"
        "00000001"
        "000102030405060708090a0b0c0d0e0f"
        "0005"
        "00000002"
        "0006"
        "0007"
        "01"
        "0008"
        "09"
    )


def test_flexible_lengths_are_varints_plus_one_with_tagged_fields():
    encoded = codec(Everything, 3, flexible=True).encode_bytes(full())
    assert encoded == bytes.fromhex(
        "06"
        "6ec3a46d65"
        "05"
        "6e6f7465"
        "03"
        "0102"
        "03"
        "00000001"
        "ffffffff"
        "03"
        "02"
        "61"
        "02"
        "62"
        "02"
        "000102030405060708090a0b0c0d0e0f"
        "0005"
        "00"
        "03"
        "000600"
        "000700"
        "01"
        "000800"
        "03"
        "00"
        "04"
        "00000003"
        "01"
        "03"
        "000a00"
        "02"
        "03"
        "020278"
    )


@pytest.mark.parametrize(("version", "flexible"), [(0, False), (1, False), (2, True), (3, True)])
def test_fields_outside_a_version_have_defaults(version, flexible):
    decoded = codec(Everything, version, flexible=flexible).decode(
        codec(Everything, version, flexible=flexible).encode_bytes(full())
    )
    expected = full()
    if version < 1:
        expected.perhaps = None
    if version < 2:
        expected.level, expected.extra = -1, None
    if version < 3:
        expected.labels = []
    if version > 2:
        expected.dropped = 7
    assert decoded == expected


def test_null_is_minus_one_or_zero_in_flexible_versions():
    nothing = Everything(names=None, note=None)
    old = codec(Everything, 1, flexible=False)
    new = codec(Everything, 3, flexible=True)
    assert old.encode_bytes(nothing).hex() == (
        "0000ffff0000000000000000ffffffff00000000000000000000ff07"
    )
    assert new.encode_bytes(nothing).hex() == "01000101000100000001ff00"
    assert old.decode(old.encode_bytes(nothing)) == nothing
    assert new.decode(new.encode_bytes(nothing)) == nothing


def test_default_lists_are_not_shared():
    new = codec(Everything, 2, flexible=True)
    first, second = (new.decode(new.encode_bytes(Everything())) for _ in range(2))
    first.labels.append("mine")
    assert second.labels == []


def test_null_in_a_non_nullable_version_is_rejected():
    old = codec(Everything, 0, flexible=False)
    with pytest.raises(EncodeError, match="Everything v0"):
        old.encode(Everything(note=None))
    with pytest.raises(ProtocolError, match="note has an invalid length of -1"):
        old.decode(b"\0\0\xff\xff" + bytes(40))


@pytest.mark.parametrize(
    "wrong", [Scalars(int8=128), Scalars(uint16=-1), Scalars(int64="x"), Scalars(uuid=3)]
)
def test_out_of_range_value_cannot_be_encoded(wrong):
    with pytest.raises(EncodeError, match="Scalars v0"):
        codec(Scalars, 0, flexible=False).encode(wrong)


def test_unknown_tagged_fields_are_skipped():
    encoded = codec(Inner, 0, flexible=True).encode_bytes(Inner(5))
    with_tags = encoded[:-1] + b"\x02\x05\x01x\xb9\x60\x00"
    assert codec(Inner, 0, flexible=True).decode(with_tags) == Inner(5)
    everything = codec(Everything, 3, flexible=True)
    encoded = everything.encode_bytes(Everything(level=4))
    assert encoded.endswith(b"\x01\x00\x04\x00\x00\x00\x04")
    with_tags = encoded[: -len(b"\x01\x00\x04\x00\x00\x00\x04")] + (
        b"\x02\x00\x04\x00\x00\x00\x04\x63\x03abc"
    )
    assert everything.decode(with_tags) == Everything(level=4)


def test_tagged_field_with_wrong_size_is_rejected():
    everything = codec(Everything, 3, flexible=True)
    encoded = everything.encode_bytes(Everything())
    assert encoded[-1:] == b"\0"
    with pytest.raises(ProtocolError, match="level does not have the size of its tag"):
        everything.decode(encoded[:-1] + b"\x01\x00\x05\x00\x00\x00\x04\x00")


def test_trailing_bytes_are_rejected_by_decode():
    inner = codec(Inner, 0, flexible=False)
    with pytest.raises(ProtocolError, match="2 bytes follow"):
        inner.decode(b"\0\5\0\0")
    assert inner.decode_at(memoryview(b"??\0\5\0\0"), 2) == (Inner(5), 4)


def test_array_count_is_checked_before_allocation():
    class Many(Message):
        numbers: list[Int64] = []

    with pytest.raises(ProtocolError, match="numbers has 2147483647 elements"):
        codec(Many, 0, flexible=False).decode(b"\x7f\xff\xff\xff" + bytes(64))
    with pytest.raises(ProtocolError, match="numbers has"):
        codec(Many, 0, flexible=True).decode(b"\xff\xff\xff\xff\x0f" + bytes(64))


class Carrier(Message):
    records: Records | None = None
    after: Int8 = 0


class SliceCarrier(Message):
    records: RecordSlices | None = None
    after: Int8 = 0


@pytest.mark.parametrize("flexible", [False, True])
def test_records_are_not_copied(flexible):
    carrier = codec(Carrier, 0, flexible=flexible)
    records = memoryview(bytearray(b"r" * 300))
    parts = carrier.encode(Carrier(records, 1))
    assert parts[1] is records
    frame = bytearray(b"".join(parts))
    decoded = carrier.decode(frame)
    assert decoded.records is not None
    assert decoded.records.obj is frame
    decoded.records[0:1] = b"R"
    assert b"Rr" in frame


@pytest.mark.parametrize("size_bytes", [126, 127, 16_382, 16_383, 2_097_150, 2_097_151])
def test_record_lengths_of_all_varint_sizes(size_bytes):
    class Preceded(Message):
        before: Int8 = 0
        records: Records | None = None

    records = memoryview(bytes(size_bytes))
    preceded = codec(Preceded, 0, flexible=True)
    first, *_ = preceded.encode(Preceded(1, records))
    assert bytes(first) == b"\x01" + varint.encode(size_bytes + 1)
    assert preceded.decode(preceded.encode_bytes(Preceded(1, records))).records == records


@pytest.mark.parametrize("flexible", [False, True])
def test_record_slices_share_one_length(flexible):
    slices = [memoryview(b"one"), memoryview(b"two")]
    parts = codec(SliceCarrier, 0, flexible=flexible).encode(SliceCarrier(slices, 1))
    assert parts[1:3] == slices
    decoded = codec(Carrier, 0, flexible=flexible).decode(b"".join(parts))
    assert bytes(decoded.records or b"") == b"onetwo"


@pytest.mark.parametrize("flexible", [False, True])
def test_null_records_differ_from_empty_records(flexible):
    carrier = codec(SliceCarrier, 0, flexible=flexible)
    assert carrier.decode(carrier.encode_bytes(SliceCarrier(None))).records is None
    assert carrier.decode(carrier.encode_bytes(SliceCarrier([]))).records == [memoryview(b"")]


def test_field_names_do_not_clash_with_generated_code():
    class Awkward(Message):
        view: String = ""
        position: Int32 = 0
        end: list[Int32] = []
        write: Annotated[String | None, tag(0, since=0)] = None

    awkward = Awkward("v", 1, [2], "w")
    for flexible in (False, True):
        both_ways = codec(Awkward, 0, flexible=flexible)
        assert both_ways.decode(both_ways.encode_bytes(awkward)).end == [2]


def test_message_without_fields():
    class Nothing(Message):
        later: Annotated[Int8, since(1)] = 0

    assert codec(Nothing, 0, flexible=False).encode_bytes(Nothing()) == b""
    assert codec(Nothing, 0, flexible=False).decode(b"") == Nothing()
    assert codec(Nothing, 0, flexible=True).encode_bytes(Nothing()) == b"\0"


def test_nested_tagged_fields():
    class Leaf(Message):
        level: Annotated[Int8, tag(0, since=0)] = 0
        number: Int8 = 0

    class Root(Message):
        leaf: Annotated[Leaf | None, tag(0, since=0)] = None
        name: Annotated[String, tag(1, since=0)] = ""

    root = Root(Leaf(level=1, number=2), "n")
    encoded = codec(Root, 0, flexible=True).encode_bytes(root)
    assert encoded.hex() == "02000502010001010102026e"
    assert codec(Root, 0, flexible=True).decode(encoded) == root


def test_codec_is_compiled_once_and_has_its_source():
    first = codec(Inner, 0, flexible=True)
    assert codec(Inner, 0, flexible=True) is first
    assert "def decode(view, position):" in first.decoder_source
    assert "def encode(message):" in first.encoder_source
