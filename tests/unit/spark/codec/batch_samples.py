"""Batches for the decoder tests: valid runs of every kind, and malformed batches."""

from random import Random
from struct import pack_into
from typing import Any

from hypothesis import strategies as st

from kafscale.records import BatchView, Codec, Header, Record, build
from kafscale.records.record import append_varlong

blobs = st.none() | st.binary(max_size=40) | st.builds(bytes, st.integers(0, 70_000))
named = st.builds(Header, st.text(max_size=8), st.none() | st.binary(max_size=10))
contents = st.tuples(
    st.integers(1, 5),  # The distance to the offset of the record before.
    st.integers(-1, 2**43) | st.integers(-(2**62), 2**62),
    blobs,
    blobs,
    st.lists(named, max_size=3),
)
KINDS: list[dict[str, Any]] = [{}, {}, {}, {"transactional": True, "producer_id": 7}]


@st.composite
def batch_runs(draw: st.DrawFn, count_max: int = 4) -> list[BatchView]:
    """Consecutive batches: any codec, offset gaps, control batches, LogAppendTime."""
    batches = []
    next_offset = draw(st.integers(0, 100) | st.integers(0, 2**62))
    for _ in range(draw(st.integers(0, count_max))):
        records = []
        for gap, timestamp_ms, key, value, headers in draw(
            st.lists(contents, min_size=1, max_size=6)
        ):
            next_offset += gap
            records.append(Record(next_offset, timestamp_ms, key, value, tuple(headers)))
        is_control = draw(st.integers(0, 5)) == 0
        kind = draw(st.sampled_from(KINDS))
        codec = draw(st.sampled_from(list(Codec)))
        batch = BatchView(build(records, codec=codec, control=is_control, **kind))
        if draw(st.booleans()):
            batch.stamp_append_time(draw(st.integers(-1, 2**43)))
        batches.append(batch)
    if draw(st.booleans()):
        return as_slices(batches)
    return batches


def as_slices(batches: list[BatchView]) -> list[BatchView]:
    """Return the same batches as slices of one buffer, with other bytes around them."""
    whole = memoryview(b"before" + b"".join(batch.buffer for batch in batches) + b"after")
    position = len(b"before")
    slices = []
    for batch in batches:
        slices.append(BatchView(whole[position : position + len(batch)]))
        position += len(batch)
    return slices


def with_payload(
    payload: bytes, count: int, *, last_offset_delta: int | None = None, **fields: int
) -> BatchView:
    """Return an uncompressed batch of these bytes with a valid checksum."""
    data = bytearray(build([Record(0, 0, None, None)])[:61]) + payload
    pack_into(">i", data, 8, len(data) - 12)
    delta = max(count - 1, 0) if last_offset_delta is None else last_offset_delta
    pack_into(">hi", data, 21, fields.get("attributes", 0), delta)
    pack_into(">qq", data, 27, fields.get("base_timestamp_ms", 0), 1_700_000_000_000)
    pack_into(">q", data, 0, fields.get("base_offset", 0))
    pack_into(">i", data, 57, count)
    batch = BatchView(data)
    batch.write_checksum()
    return batch


# --- malformed batches ------------------------------------------------------------------------

INVALID_NUMBERS = (-(2**31), -1000, -3, -2, -1, 0, 1, 2, 63, 64, 127, 128, 1000, 2**20, 2**31 - 1)
BYTES = (0x00, 0x01, 0x02, 0x03, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF)


def malformed_batch(random: Random) -> BatchView:
    """Return a batch that is nearly valid, or valid by chance; reproducible by the seed."""
    count = random.choice((0, 1, 1, 2, 3, 5))
    payload = bytearray()
    for index in range(count):
        payload += _record(random, index)
    if random.random() < 0.4:
        for _ in range(random.randint(1, 3)):
            _mutate(random, payload)
    if random.random() < 0.1:
        count = random.choice((-1, 0, 1, 2, 6, 2**31 - 1))
    return with_payload(
        bytes(payload),
        count,
        last_offset_delta=None
        if random.random() < 0.8
        else random.choice((-1, 0, 1, 4, 2**31 - 1)),
        attributes=random.choice((0, 0, 0, 8, 16)),
        base_timestamp_ms=random.choice((0, -1, *2 * (1_700_000_000_000,), 2**63 - 1)),
        base_offset=random.choice((*8 * (0,), 5, 5, 10**12, 2**63 - 1, 2**63 - 3, -1)),
    )


def _record(random: Random, index: int) -> bytes:
    fields = bytearray((random.choice((0, 0, 255)),))
    _append_number(
        random, fields, random.choice((*4 * (0, 1, -1, 300, 2**40), 2**63 - 1, -(2**63)))
    )
    _append_number(
        random, fields, index if random.random() < 0.9 else random.choice(INVALID_NUMBERS)
    )
    for _ in range(2):
        _append_bytes(random, fields)
    count = random.choice((0, 0, 0, 1, 2, 3))
    _append_number(
        random, fields, count if random.random() < 0.95 else random.choice(INVALID_NUMBERS)
    )
    for _ in range(2 * count):
        _append_bytes(random, fields, is_nullable=random.random() < 0.5)
    output = bytearray()
    _append_number(
        random, output, len(fields) if random.random() < 0.95 else random.choice(INVALID_NUMBERS)
    )
    return bytes(output + fields)


def _append_bytes(random: Random, output: bytearray, *, is_nullable: bool = True) -> None:
    data = random.randbytes(random.choice((0, 1, 2, 3, 70, 130)))
    if is_nullable and random.random() < 0.2:
        _append_number(random, output, -1)
        return
    _append_number(
        random, output, len(data) if random.random() < 0.97 else random.choice(INVALID_NUMBERS)
    )
    output += data


def _append_number(random: Random, output: bytearray, number: int) -> None:
    """Append a varint that sometimes takes more bytes than needed, or than allowed."""
    append_varlong(output, number)
    if random.random() < 0.05:
        output[-1] |= 0x80
        output += bytes((0x80,)) * random.randrange(10) + bytes((random.choice((0, 0, 1, 2)),))


def _mutate(random: Random, payload: bytearray) -> None:
    position = random.randrange(len(payload) + 1)
    match random.randrange(4):
        case 0:
            del payload[position : position + random.randint(1, 3)]
        case 1:
            payload[position:position] = bytes(random.choices(BYTES, k=random.randint(1, 10)))
        case 2:
            payload[position : position + 1] = bytes((random.choice(BYTES),))
        case _:
            del payload[position:]
