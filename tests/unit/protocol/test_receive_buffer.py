"""`FrameBufferPool`: buffers are reused only when they are no longer referenced."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.protocol.frame import FrameReader
from kafscale.protocol.receive_buffer import FRAME_BYTES_MAX, FRAME_BYTES_MIN, FrameBufferPool

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


@pytest.mark.parametrize("size_bytes", [FRAME_BYTES_MIN - 1, FRAME_BYTES_MAX + 1])
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
    for payload, frame in held:
        assert frame == payload
