r"""Frames: how messages are cut out of a stream of bytes, and put into one.

A frame is an int32 length and as many bytes. `FrameReader` is sans-io: it hands out the buffer that
the next bytes are to be read into, is told how many came, and returns the frames that these
complete.

    >>> reader = FrameReader()
    >>> [bytes(frame) for frame in reader.feed(b"\x00\x00\x00\x02hi\x00\x00\x00\x03wo")]
    [b'hi']
    >>> [bytes(frame) for frame in reader.feed(b"w")]
    [b'wow']

Laws: a length is compared with the cap before anything is allocated for it, and memory grows with
what comes, not with what is announced, unless it lies idle anyway. Every frame has memory of its
own, writable, that nothing else will change while somebody looks at it; a frame that does not come
in one piece is read straight into it. What it leaves to others: sockets, what is inside a frame,
and where memory comes from (`frame_memory`).
"""

import struct

from kafscale.errors import FrameError
from kafscale.protocol.codec.codec import Buffer
from kafscale.protocol.receive_buffer import FrameBufferPool

FRAME_BYTES_MAX = 100 * 1024 * 1024
FRAME_BYTES_FIRST = 16 * 1024
FRAME_GROWTH = 4
LENGTH = struct.Struct(">i")
assert LENGTH.size == 4


class FrameReader:
    """Cuts one connection's bytes into frames.

    Between two calls nothing of a connection stays in the memory to receive into, so that all
    connections of an event loop may share one: an idle connection then costs no buffer.
    """

    __slots__ = ("_filled", "_frame", "_length", "_memory", "_receive", "_rest", "frame_bytes_max")

    def __init__(
        self, frame_bytes_max: int = FRAME_BYTES_MAX, memory: FrameBufferPool | None = None
    ) -> None:
        """Without `memory` to share, it has its own, and keeps none of what frames were in."""
        self.frame_bytes_max = frame_bytes_max
        """May be changed at any time; it holds for the next frame that begins."""
        self._memory = memory or FrameBufferPool(kept_bytes_max=0)
        self._receive = self._memory.receive
        assert len(self._receive) > LENGTH.size
        self._rest = b""  # The first bytes of a length that has not come whole.
        self._frame: memoryview | None = None  # A frame that has not come whole, or its beginning,
        self._filled = 0  # how much of it has come,
        self._length = 0  # and how long it is.

    def buffer(self) -> memoryview:
        """Where the next bytes belong. Fill it, from its start, then call `received` at once."""
        if self._frame is not None:
            return self._frame[self._filled :]
        self._receive[: len(self._rest)] = self._rest
        return self._receive[len(self._rest) :]

    def received(self, count: int) -> list[memoryview]:
        """Take `count` bytes that were read into `buffer()`; the frames that are whole now."""
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
        """Take bytes that are in memory already."""
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
        """Whether a frame has begun and not ended: the peer may not leave here."""
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
        """Take what lies idle, or a few times what has come: a length alone is only a claim."""
        frame = self._memory.idle(self._length)
        if frame is None:
            size_bytes = min(self._length, max(FRAME_BYTES_FIRST, FRAME_GROWTH * len(start)))
            is_whole = size_bytes == self._length
            frame = self._memory.make(size_bytes) if is_whole else memoryview(bytearray(size_bytes))
        frame[: len(start)] = start
        self._frame = frame

    def _check(self, length: int) -> None:
        if length < 0:
            raise FrameError(f"a frame has a length of {length}; is the peer speaking Kafka?")
        if length > self.frame_bytes_max:
            raise FrameError(
                f"a frame of {length} bytes is above the cap of {self.frame_bytes_max} bytes"
            )


def frame(header: bytes, body: list[Buffer]) -> list[Buffer]:
    """A whole frame as parts to be sent after each other; big parts are not copied."""
    size_bytes = len(header) + sum(map(len, body))
    # An encoder's first part is small, so that joining it saves a system call's worth of overhead.
    return [b"".join((LENGTH.pack(size_bytes), header, body[0])), *body[1:]]
