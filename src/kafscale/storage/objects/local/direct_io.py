"""Direct I/O for large files, which bypasses the page cache.

Why: the page cache would use memory for a second copy and evict other pages. The records of a
segment are in the tail when it is written, and in the block cache when it is read; direct I/O also
needs a fraction of the CPU time.

Constraint: direct I/O transfers whole sectors to and from aligned memory. Writes are collected in a
page-aligned buffer, the last page is padded with zeros, and the file is truncated to its length at
the end. Reads start at a sector, and allocate no more memory than the file has bytes.
"""

import mmap
import os
import threading
from collections.abc import Callable, Sequence
from typing import Final

from kafscale.records.checksum import Buffer

DIRECT: Final = getattr(os, "O_DIRECT", 0)
"""The open flag for direct I/O; 0 where the system has none."""

SIZE_BYTES_MIN: Final = 1024 * 1024
"""The minimum size for direct I/O."""

_CHUNK_BYTES: Final = 1024 * 1024
_SECTOR_BYTES: Final = 4096

_buffers = threading.local()

Write = Callable[[int, Sequence[Buffer]], int]


def write_direct(write: Write, descriptor: int, parts: Sequence[Buffer]) -> None:
    """Write all parts to a file opened with `DIRECT`, and truncate it to their length."""
    chunk = _buffer()
    filled = 0
    size_bytes = 0
    for part in parts:
        rest = memoryview(part)
        size_bytes += len(rest)
        while rest:
            copied = min(len(rest), _CHUNK_BYTES - filled)
            chunk[filled : filled + copied] = rest[:copied]
            filled += copied
            rest = rest[copied:]
            if filled == _CHUNK_BYTES:
                _write_whole(write, descriptor, chunk)
                filled = 0
    if filled:
        padded = -(-filled // _SECTOR_BYTES) * _SECTOR_BYTES
        chunk[filled:padded] = bytes(padded - filled)
        _write_whole(write, descriptor, chunk[:padded])
        os.ftruncate(descriptor, size_bytes)


def is_direct(start: int, stop: int) -> bool:
    """Whether a range is read with direct I/O."""
    return bool(DIRECT) and stop - start >= SIZE_BYTES_MIN and start % _SECTOR_BYTES == 0


def read_direct(descriptor: int, start: int, stop: int) -> memoryview:
    """Read a range of a file opened with `DIRECT`; shorter only at the end of the file."""
    stop = min(stop, os.fstat(descriptor).st_size)
    if stop <= start:
        return memoryview(b"")
    length = -(-(stop - start) // _SECTOR_BYTES) * _SECTOR_BYTES
    # Anonymous pages are aligned; a `bytearray` would be zeroed first.
    aligned = memoryview(mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    filled = 0
    while filled < length:
        count = os.preadv(descriptor, [aligned[filled:]], start + filled)
        filled += count
        if count == 0 or count % _SECTOR_BYTES:
            break  # End of file.
    return aligned[: min(filled, stop - start)].toreadonly()


def _write_whole(write: Write, descriptor: int, view: memoryview) -> None:
    while view:
        written = write(descriptor, [view])
        # A write to a full disk may stop within a sector; write that sector again.
        surplus = written % _SECTOR_BYTES
        if surplus:
            os.lseek(descriptor, -surplus, os.SEEK_CUR)
        view = view[written - surplus :]


def _buffer() -> memoryview:
    """An aligned buffer per thread."""
    view: memoryview | None = getattr(_buffers, "view", None)
    if view is None:
        view = _buffers.view = memoryview(mmap.mmap(-1, _CHUNK_BYTES))
    return view
