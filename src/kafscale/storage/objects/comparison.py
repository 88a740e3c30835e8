"""Compares an object that was read with the parts that were to be written.

Comparing two memoryviews takes 25 times as long as comparing two bytes objects, so pieces are
copied first. Large objects are compared in a thread.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from kafscale.records.checksum import Buffer

_PIECE_BYTES: Final = 256 * 1024
"""How much is copied at a time."""


async def is_equal(stored: memoryview, parts: Sequence[Buffer]) -> bool:
    """Whether the stored object consists of these parts."""
    if len(stored) != sum(map(len, parts)):
        return False
    if len(stored) <= _PIECE_BYTES:
        return _compare(stored, parts)
    return await asyncio.get_running_loop().run_in_executor(None, _compare, stored, parts)


def _compare(stored: memoryview, parts: Sequence[Buffer]) -> bool:
    position = 0
    for part in parts:
        view = memoryview(part)
        for start in range(0, len(view), _PIECE_BYTES):
            piece = bytes(view[start : start + _PIECE_BYTES])
            if bytes(stored[position : position + len(piece)]) != piece:
                return False
            position += len(piece)
    return True
