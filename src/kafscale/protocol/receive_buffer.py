"""The memory that frames are received into, shared by the connections of one event loop.

Why: a large frame is large memory, which the allocator takes from the system and gives back, frame
after frame, and each time it is filled with zeros first. That costs more than all else that is done
with such a frame. So the memory of some is kept, and lies idle until the next one comes.

The laws: memory is given out again only when nobody looks at it any more, which the interpreter
itself knows: who still holds a view of a frame keeps it. What is kept is bounded; beyond the bound,
and for frames that are small or huge, memory is made anew. What it held before is never shown: a
frame covers exactly the bytes that came for it.
"""

from collections import deque
from typing import Final

RECEIVE_BYTES: Final = 64 * 1024
KEPT_BYTES_MAX: Final = 32 * 1024 * 1024
"""How much is kept in all: the frames in flight of a few busy producers."""
FRAME_BYTES_MIN: Final = 64 * 1024
FRAME_BYTES_MAX: Final = 4 * 1024 * 1024
"""Between these sizes a frame's memory is worth to be kept."""


class FrameBufferPool:
    """What is received into: one buffer for whatever comes, and memory for large frames."""

    __slots__ = ("_kept", "_kept_bytes", "_kept_bytes_max", "receive")

    def __init__(
        self, receive_bytes: int = RECEIVE_BYTES, kept_bytes_max: int = KEPT_BYTES_MAX
    ) -> None:
        self.receive = memoryview(bytearray(receive_bytes))
        """For all connections, because nothing stays in it between two calls of a reader."""
        # By the number of bits of their sizes, in the order in which they were last given out.
        self._kept: dict[int, deque[bytearray]] = {}
        self._kept_bytes = 0
        self._kept_bytes_max = kept_bytes_max

    def idle(self, size_bytes: int) -> memoryview | None:
        """Memory for a frame of this size, if some lies idle; it costs nothing to hand it out."""
        kept = self._kept.get(size_bytes.bit_length())
        if kept is None:
            return None
        kept.rotate(-1)
        return memoryview(kept[-1])[:size_bytes] if _is_idle(kept[-1]) else None

    def make(self, size_bytes: int) -> memoryview:
        """Memory for a frame of this size, to be kept for others if there is room."""
        bits = size_bytes.bit_length()
        room_bytes = 1 << bits
        if (
            not FRAME_BYTES_MIN <= size_bytes <= FRAME_BYTES_MAX
            or self._kept_bytes + room_bytes > self._kept_bytes_max
        ):
            return memoryview(bytearray(size_bytes))
        room = bytearray(room_bytes)
        self._kept.setdefault(bits, deque()).append(room)
        self._kept_bytes += room_bytes
        return memoryview(room)[:size_bytes]


def _is_idle(room: bytearray) -> bool:
    """Whether nobody looks at it: nothing that is looked at can change its size."""
    try:
        room.pop()
    except BufferError:
        return False
    room.append(0)
    return True
