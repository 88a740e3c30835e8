r"""Frames: splits a byte stream into messages, and builds frames to send.

A frame is an int32 length and that many bytes. `FrameReader` is sans-io: it provides a buffer to
read into, and returns the frames that the received bytes complete.

    >>> reader = FrameReader()
    >>> [bytes(frame) for frame in reader.feed(b"\x00\x00\x00\x02hi\x00\x00\x00\x03wo")]
    [b'hi']
    >>> [bytes(frame) for frame in reader.feed(b"w")]
    [b'wow']

Invariants: a length is checked before anything is allocated for it, and memory grows with the bytes
received, not with the announced length, unless an idle buffer fits. Every frame has its own
writable memory, which does not change while it is referenced. A frame that does not arrive at once
is received directly into its memory.
"""

import struct
from collections import deque
from typing import Final

from kafscale.errors import FrameError
from kafscale.protocol.codec.codec import Buffer

FRAME_BYTES_MAX = 100 * 1024 * 1024
FRAME_BYTES_FIRST = 16 * 1024
FRAME_GROWTH = 4
LENGTH = struct.Struct(">i")
assert LENGTH.size == 4

RECEIVE_BYTES: Final = 64 * 1024
KEPT_BYTES_MAX: Final = 32 * 1024 * 1024
"""The size of the pool: the frames in flight of a few busy producers."""
KEPT_FRAME_BYTES_MIN: Final = 64 * 1024
KEPT_FRAME_BYTES_MAX: Final = 4 * 1024 * 1024
"""Buffers between these sizes are kept."""


class FrameBufferPool:
    """One receive buffer, shared by the connections of an event loop, and buffers for large frames.

    The allocator maps and unmaps memory of large frames for every frame, and the kernel zeroes it,
    which costs more than everything else that is done with such a frame. So buffers of medium size
    are kept for reuse.

    Invariants: a buffer is reused only if no memoryview of it exists any more, which the
    interpreter itself checks. The size of the pool is bounded; other frames get new memory. Old
    content is never visible: a frame covers exactly the bytes received for it.
    """

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
            not KEPT_FRAME_BYTES_MIN <= size_bytes <= KEPT_FRAME_BYTES_MAX
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


class FrameReader:
    """Splits the bytes of one connection into frames.

    Between calls no data of a connection stays in the receive buffer, so that all connections of an
    event loop share one; an idle connection needs no buffer.
    """

    __slots__ = ("_filled", "_frame", "_length", "_pool", "_receive", "_rest", "frame_bytes_max")

    def __init__(
        self, frame_bytes_max: int = FRAME_BYTES_MAX, pool: FrameBufferPool | None = None
    ) -> None:
        """Without a shared pool the reader uses its own, which keeps no frames."""
        self.frame_bytes_max = frame_bytes_max
        """May be changed at any time; it applies to the next frame."""
        self._pool = pool or FrameBufferPool(kept_bytes_max=0)
        self._receive = self._pool.receive
        assert len(self._receive) > LENGTH.size
        self._rest = b""  # An incomplete length prefix.
        self._frame: memoryview | None = None  # An incomplete frame, or its start,
        self._filled = 0  # the number of bytes received,
        self._length = 0  # and its length.

    def buffer(self) -> memoryview:
        """The buffer for the next bytes. Fill it from its start, then call `received`."""
        if self._frame is not None:
            return self._frame[self._filled :]
        self._receive[: len(self._rest)] = self._rest
        return self._receive[len(self._rest) :]

    def received(self, count: int) -> list[memoryview]:
        """Process `count` bytes that were read into `buffer()`; return complete frames."""
        if self._frame is not None:
            self._filled += count
            if self._filled < len(self._frame):
                return []
            if self._filled < self._length:
                self._allocate(self._frame)
                return []
            frame, self._frame = self._frame, None
            return [frame]
        count += len(self._rest)
        self._rest = b""
        return self._cut(count)

    def feed(self, data: Buffer) -> list[memoryview]:
        """Process bytes that are already in memory."""
        frames: list[memoryview] = []
        view = memoryview(data)
        while view:
            buffer = self.buffer()
            count = min(len(buffer), len(view))
            buffer[:count] = view[:count]
            frames += self.received(count)
            view = view[count:]
        return frames

    @property
    def pending(self) -> bool:
        """True if a frame is incomplete."""
        return self._frame is not None or bool(self._rest)

    def _cut(self, end: int) -> list[memoryview]:
        frames: list[memoryview] = []
        receive = self._receive
        position = 0
        while end - position >= LENGTH.size:
            (length,) = LENGTH.unpack_from(receive, position)
            self._check(length)
            position += LENGTH.size
            if length > end - position:
                self._begin(length, receive[position:end])
                return frames
            frames.append(memoryview(bytearray(receive[position : position + length])))
            position += length
        self._rest = receive[position:end].tobytes()
        return frames

    def _begin(self, length: int, start: memoryview) -> None:
        self._length = length
        self._filled = len(start)
        self._allocate(start)

    def _allocate(self, start: memoryview) -> None:
        """Use an idle buffer, or allocate a few times what has arrived: the length may be wrong."""
        frame = self._pool.take_idle(self._length)
        if frame is None:
            size_bytes = min(self._length, max(FRAME_BYTES_FIRST, FRAME_GROWTH * len(start)))
            is_whole = size_bytes == self._length
            frame = (
                self._pool.allocate(size_bytes) if is_whole else memoryview(bytearray(size_bytes))
            )
        frame[: len(start)] = start
        self._frame = frame

    def _check(self, length: int) -> None:
        if length < 0:
            raise FrameError(
                f"invalid frame length {length}; the peer may not use the Kafka protocol"
            )
        if length > self.frame_bytes_max:
            raise FrameError(
                f"a frame of {length} bytes exceeds the limit of {self.frame_bytes_max} bytes"
            )


def frame(header: bytes, body: list[Buffer]) -> list[Buffer]:
    """Build a frame as a list of parts; large parts are not copied."""
    size_bytes = len(header) + sum(map(len, body))
    # The first part is small, so joining it saves the overhead of another part.
    return [b"".join((LENGTH.pack(size_bytes), header, body[0])), *body[1:]]
