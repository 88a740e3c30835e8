"""`FrameBufferPool`: receive buffers, shared by the connections of one event loop.

The allocator maps and unmaps memory of large frames for every frame, and the kernel zeroes it,
which costs more than everything else that is done with such a frame. So buffers of medium size are
kept for reuse.

Invariants: a buffer is reused only if no memoryview of it exists any more, which the interpreter
itself checks. The size of the pool is bounded; other frames get new memory. Old content is never
visible: a frame covers exactly the bytes received for it.
"""

from collections import deque
from typing import Final

RECEIVE_BYTES: Final = 64 * 1024
KEPT_BYTES_MAX: Final = 32 * 1024 * 1024
"""The size of the pool: the frames in flight of a few busy producers."""
FRAME_BYTES_MIN: Final = 64 * 1024
FRAME_BYTES_MAX: Final = 4 * 1024 * 1024
"""Buffers between these sizes are kept."""


class FrameBufferPool:
    """One shared receive buffer, and reusable buffers for large frames."""

    __slots__ = ("_kept", "_kept_bytes", "_kept_bytes_max", "receive")

    def __init__(
        self, receive_bytes: int = RECEIVE_BYTES, kept_bytes_max: int = KEPT_BYTES_MAX
    ) -> None:
        self.receive = memoryview(bytearray(receive_bytes))
        """Shared by all connections, because no data stays in it between calls."""
        # By size class (number of bits), least recently used first.
        self._kept: dict[int, deque[bytearray]] = {}
        self._kept_bytes = 0
        self._kept_bytes_max = kept_bytes_max

    def take_idle(self, size_bytes: int) -> memoryview | None:
        """Return an idle buffer for a frame of this size, or None."""
        kept = self._kept.get(size_bytes.bit_length())
        if kept is None:
            return None
        kept.rotate(-1)
        return memoryview(kept[-1])[:size_bytes] if _is_idle(kept[-1]) else None

    def allocate(self, size_bytes: int) -> memoryview:
        """Allocate a buffer for a frame of this size, and keep it if the pool has space."""
        bits = size_bytes.bit_length()
        buffer_bytes = 1 << bits
        if (
            not FRAME_BYTES_MIN <= size_bytes <= FRAME_BYTES_MAX
            or self._kept_bytes + buffer_bytes > self._kept_bytes_max
        ):
            return memoryview(bytearray(size_bytes))
        buffer = bytearray(buffer_bytes)
        self._kept.setdefault(bits, deque()).append(buffer)
        self._kept_bytes += buffer_bytes
        return memoryview(buffer)[:size_bytes]


def _is_idle(buffer: bytearray) -> bool:
    """True if no memoryview of the buffer exists: only then its size can change."""
    try:
        buffer.pop()
    except BufferError:
        return False
    buffer.append(0)
    return True
