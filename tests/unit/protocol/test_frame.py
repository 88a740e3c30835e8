"""`FrameReader`: the same frames, however the stream is split."""

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafscale.errors import FrameError
from kafscale.protocol.frame import FrameReader, frame
from kafscale.protocol.receive_buffer import FrameBufferPool


def on_the_wire(payloads: list[bytes]) -> bytes:
    return b"".join(struct.pack(">i", len(payload)) + payload for payload in payloads)


@given(
    payloads=st.lists(st.binary(max_size=200)),
    cuts=st.lists(st.integers(1, 50), min_size=1),
    receive_bytes=st.integers(5, 64),
)
def test_frames_do_not_depend_on_chunk_boundaries(payloads, cuts, receive_bytes):
    reader = FrameReader(pool=FrameBufferPool(receive_bytes))
    stream = on_the_wire(payloads)
    frames = []
    turn = 0
    while stream:
        count = cuts[turn % len(cuts)]
        frames += reader.feed(stream[:count])
        stream = stream[count:]
        turn += 1
    assert [bytes(result) for result in frames] == payloads
    assert not reader.pending


@given(st.data())
def test_connections_share_one_receive_buffer(data):
    shared = FrameBufferPool(16)
    sent = {0: b"first connection's bytes", 1: b"and those of the second one"}
    streams = {key: on_the_wire([payload] * 3) for key, payload in sent.items()}
    readers = {key: FrameReader(pool=shared) for key in sent}
    got: dict[int, list[bytes]] = {0: [], 1: []}
    while any(streams.values()):
        key = data.draw(st.sampled_from([k for k, rest in streams.items() if rest]))
        count = data.draw(st.integers(1, 20))
        got[key] += map(bytes, readers[key].feed(streams[key][:count]))
        streams[key] = streams[key][count:]
    assert got == {key: [payload] * 3 for key, payload in sent.items()}


def test_frame_has_its_own_writable_memory():
    reader = FrameReader()
    (first,) = reader.feed(on_the_wire([b"first"]))
    reader.feed(on_the_wire([b"other"]))
    first[0:1] = b"F"
    assert bytes(first) == b"First"


def test_large_frame_is_received_into_its_own_memory():
    reader = FrameReader()
    reader.feed(struct.pack(">i", 60_000) + bytes(20_000))
    place = reader.buffer()
    assert len(place) == 40_000
    place[-1:] = b"!"
    (whole,) = reader.received(40_000)
    assert whole.obj is place.obj
    assert whole[-1:] == b"!"


def test_memory_grows_with_received_bytes():
    reader = FrameReader()
    reader.feed(struct.pack(">i", 50_000_000) + b"x")
    assert len(reader.buffer()) < 20_000
    reader.feed(bytes(100_000))
    assert len(reader.buffer()) < 400_000


@given(st.binary(max_size=300_000), st.integers(1, 70_000))
@settings(max_examples=20)
def test_frame_in_several_chunks_is_complete(payload, piece_bytes):
    reader = FrameReader()
    stream = struct.pack(">i", len(payload)) + payload
    frames = []
    for position in range(0, len(stream), piece_bytes):
        frames += reader.feed(stream[position : position + piece_bytes])
    assert [bytes(frame) for frame in frames] == [payload]
    assert not reader.pending


@pytest.mark.parametrize("length", [-1, -(2**31), 101, 2**31 - 1])
def test_invalid_length_is_rejected_before_allocation(length):
    reader = FrameReader(frame_bytes_max=100)
    tracemalloc.start()
    try:
        with pytest.raises(FrameError, match=str(length)):
            reader.feed(struct.pack(">i", length))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 100_000


def test_default_limit_is_100_mib():
    with pytest.raises(FrameError):
        FrameReader().feed(struct.pack(">i", 104857601))
    assert FrameReader().feed(struct.pack(">i", 104857600)) == []


def test_incomplete_frame_is_pending():
    reader = FrameReader()
    assert not reader.pending
    reader.feed(b"\0")
    assert reader.pending
    reader.feed(b"\0\0\2a")
    assert reader.pending
    reader.feed(b"b")
    assert not reader.pending


def test_frame_joins_small_parts_and_keeps_records():
    records = memoryview(b"records")
    parts = frame(b"head", [b"body", records, b"tail"])
    assert parts == [b"\0\0\0\x13headbody", records, b"tail"]
    assert parts[1] is records
