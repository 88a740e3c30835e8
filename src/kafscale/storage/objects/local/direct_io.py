"""Large files are written and read past the page cache of the system.

Why: the cache would take memory for a copy that nobody may ever read, and give back other pages for
it. A segment's records are in the tail when it is written, and in the cache of blocks, which is
ours, when it is read; going straight to the disk takes a fraction of the processor's time.

The law: the disk takes and gives whole sectors, in aligned memory. So what is written is gathered
in a buffer of pages, the last of which is filled up with zeros, and the file is cut to its length
in the end; what is read begins at a sector, and takes no more memory than the file has bytes.
"""

import mmap
import os
import threading
from collections.abc import Callable, Sequence
from typing import Final

from kafscale.records.checksum import Buffer

DIRECT: Final = getattr(os, "O_DIRECT", 0)
"""The flag that says so, or nothing where the system has none."""

SIZE_BYTES_MIN: Final = 1024 * 1024
"""From which size on it is worth it."""

_CHUNK_BYTES: Final = 1024 * 1024
_SECTOR_BYTES: Final = 4096

_buffers = threading.local()

Write = Callable[[int, Sequence[Buffer]], int]


def write_direct(write: Write, descriptor: int, parts: Sequence[Buffer]) -> None:
    """Write every part to a file that was opened with `DIRECT`, and cut it to their length."""
    chunk = _buffer()
    filled = 0
    size_bytes = 0
    for part in parts:
        rest = memoryview(part)
        size_bytes += len(rest)
        while rest:
            taken = min(len(rest), _CHUNK_BYTES - filled)
            chunk[filled : filled + taken] = rest[:taken]
            filled += taken
            rest = rest[taken:]
            if filled == _CHUNK_BYTES:
                _write_whole(write, descriptor, chunk)
                filled = 0
    if filled:
        padded = -(-filled // _SECTOR_BYTES) * _SECTOR_BYTES
        chunk[filled:padded] = bytes(padded - filled)
        _write_whole(write, descriptor, chunk[:padded])
        os.ftruncate(descriptor, size_bytes)


def is_direct(start: int, stop: int) -> bool:
    """Whether a range is read this way."""
    return bool(DIRECT) and stop - start >= SIZE_BYTES_MIN and start % _SECTOR_BYTES == 0


def read_direct(descriptor: int, start: int, stop: int) -> memoryview:
    """A range of a file that was opened with `DIRECT`; shorter only where the file ends."""
    stop = min(stop, os.fstat(descriptor).st_size)
    if stop <= start:
        return memoryview(b"")
    length = -(-(stop - start) // _SECTOR_BYTES) * _SECTOR_BYTES
    # Pages as the system gives them, aligned: a `bytearray` would be filled with zeros before.
    aligned = memoryview(mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    filled = 0
    while filled < length:
        count = os.preadv(descriptor, [aligned[filled:]], start + filled)
        filled += count
        if count == 0 or count % _SECTOR_BYTES:
            break  # The end of the file.
    return aligned[: min(filled, stop - start)].toreadonly()


def _write_whole(write: Write, descriptor: int, view: memoryview) -> None:
    while view:
        written = write(descriptor, [view])
        # A disk that runs full may stop within a sector, which is then written again as a whole.
        surplus = written % _SECTOR_BYTES
        if surplus:
            os.lseek(descriptor, -surplus, os.SEEK_CUR)
        view = view[written - surplus :]


def _buffer() -> memoryview:
    """Aligned memory of this thread's own."""
    found: memoryview | None = getattr(_buffers, "view", None)
    if found is None:
        found = _buffers.view = memoryview(mmap.mmap(-1, _CHUNK_BYTES))
    return found
