"""`FrameReader`: the same frames, however the stream is split."""

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafscale.errors import FrameError
from kafscale.protocol.frame import (
    KEPT_FRAME_BYTES_MAX,
    KEPT_FRAME_BYTES_MIN,
    FrameBufferPool,
    FrameReader,
    frame,
)


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


SIZE = 100_000


def arriving(reader: FrameReader, payload: bytes) -> memoryview:
    """Receive a frame in chunks of 64 KiB, as from a socket."""
    stream = struct.pack(">i", len(payload)) + payload
    frames: list[memoryview] = []
    for start in range(0, len(stream), 65_536):
        frames += reader.feed(stream[start : start + 65_536])
    [result] = frames
    return result


def test_new_pool_has_no_idle_buffer():
    assert FrameBufferPool().take_idle(SIZE) is None


def test_buffer_is_reused_when_it_is_not_referenced():
    pool = FrameBufferPool()
    first = pool.allocate(SIZE)
    buffer = first.obj
    assert pool.take_idle(SIZE) is None
    part = first[10:20]
    del first
    assert pool.take_idle(SIZE) is None, "a slice of it is referenced"
    del part
    again = pool.take_idle(SIZE + 1)
    assert again is not None
    assert again.obj is buffer
    assert len(again) == SIZE + 1


def test_referenced_buffer_does_not_hide_idle_ones():
    pool = FrameBufferPool()
    kept, gone = pool.allocate(SIZE), pool.allocate(SIZE)
    del gone
    assert any(pool.take_idle(SIZE) is not None for _ in range(2))
    del kept


@pytest.mark.parametrize("size_bytes", [KEPT_FRAME_BYTES_MIN - 1, KEPT_FRAME_BYTES_MAX + 1])
def test_small_and_huge_buffers_are_not_kept(size_bytes):
    pool = FrameBufferPool()
    assert len(pool.allocate(size_bytes)) == size_bytes
    assert pool.take_idle(size_bytes) is None


def test_pool_size_is_bounded():
    pool = FrameBufferPool(kept_bytes_max=3 * 131_072)
    frames = [pool.allocate(SIZE) for _ in range(10)]
    rooms = {id(frame.obj) for frame in frames if len(frame.obj) > SIZE}
    assert len(rooms) == 3
    del frames
    taken = [pool.take_idle(SIZE) for _ in range(10)]
    assert sum(result is not None for result in taken) == 3


def test_large_frame_reuses_a_buffer():
    pool = FrameBufferPool()
    reader = FrameReader(pool=pool)
    first = arriving(reader, b"a" * 1_500_000)
    buffer = first.obj
    del first
    second = arriving(reader, b"b" * 1_400_000)
    assert second.obj is buffer
    assert bytes(second) == b"b" * 1_400_000


@given(
    st.lists(
        st.tuples(st.integers(0, 255), st.sampled_from([70_000, 90_000, 200_000]), st.booleans()),
        max_size=30,
    )
)
def test_frames_do_not_change_while_referenced(arrivals):
    reader = FrameReader(pool=FrameBufferPool(kept_bytes_max=1_000_000))
    held: list[tuple[bytes, memoryview]] = []
    for letter, size_bytes, is_let_go in arrivals:
        payload = bytes([letter]) * size_bytes
        held.append((payload, arriving(reader, payload)))
        if is_let_go:
            held.pop(0)
    for payload, received in held:
        assert received == payload
