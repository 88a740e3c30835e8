"""The memory of frames: used again when nobody looks at it any more, and never before."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.protocol.frame import FrameReader
from kafscale.protocol.receive_buffer import FRAME_BYTES_MAX, FRAME_BYTES_MIN, FrameBufferPool

SIZE = 100_000


def arriving(reader: FrameReader, payload: bytes) -> memoryview:
    """A frame that comes in pieces of 64 KiB, as from a socket."""
    stream = struct.pack(">i", len(payload)) + payload
    frames: list[memoryview] = []
    for start in range(0, len(stream), 65_536):
        frames += reader.feed(stream[start : start + 65_536])
    [found] = frames
    return found


def test_nothing_lies_idle_before_there_was_a_frame():
    assert FrameBufferPool().take_idle(SIZE) is None


def test_memory_is_given_out_again_when_nobody_looks_at_it():
    memory = FrameBufferPool()
    first = memory.allocate(SIZE)
    room = first.obj
    assert memory.take_idle(SIZE) is None
    part = first[10:20]
    del first
    assert memory.take_idle(SIZE) is None, "a part of it is looked at"
    del part
    again = memory.take_idle(SIZE + 1)
    assert again is not None
    assert again.obj is room
    assert len(again) == SIZE + 1


def test_one_that_is_kept_for_long_does_not_hide_the_others():
    memory = FrameBufferPool()
    kept, gone = memory.allocate(SIZE), memory.allocate(SIZE)
    del gone
    assert any(memory.take_idle(SIZE) is not None for _ in range(2))
    del kept


@pytest.mark.parametrize("size_bytes", [FRAME_BYTES_MIN - 1, FRAME_BYTES_MAX + 1])
def test_small_and_huge_frames_are_not_kept(size_bytes):
    memory = FrameBufferPool()
    assert len(memory.allocate(size_bytes)) == size_bytes
    assert memory.take_idle(size_bytes) is None


def test_what_is_kept_is_bounded():
    memory = FrameBufferPool(kept_bytes_max=3 * 131_072)
    frames = [memory.allocate(SIZE) for _ in range(10)]
    rooms = {id(frame.obj) for frame in frames if len(frame.obj) > SIZE}
    assert len(rooms) == 3
    del frames
    taken = [memory.take_idle(SIZE) for _ in range(10)]
    assert sum(found is not None for found in taken) == 3


def test_a_large_frame_is_received_where_another_was():
    memory = FrameBufferPool()
    reader = FrameReader(pool=memory)
    first = arriving(reader, b"a" * 1_500_000)
    room = first.obj
    del first
    second = arriving(reader, b"b" * 1_400_000)
    assert second.obj is room
    assert bytes(second) == b"b" * 1_400_000


@given(
    st.lists(
        st.tuples(st.integers(0, 255), st.sampled_from([70_000, 90_000, 200_000]), st.booleans()),
        max_size=30,
    )
)
def test_frames_never_change_while_somebody_has_them(arrivals):
    reader = FrameReader(pool=FrameBufferPool(kept_bytes_max=1_000_000))
    held: list[tuple[bytes, memoryview]] = []
    for letter, size_bytes, is_let_go in arrivals:
        payload = bytes([letter]) * size_bytes
        held.append((payload, arriving(reader, payload)))
        if is_let_go:
            held.pop(0)
    for payload, frame in held:
        assert frame == payload
