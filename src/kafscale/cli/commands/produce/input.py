"""Standard input, read in a thread of its own, so that waiting for it holds nobody up.

The law: not more than a few chunks are read ahead. The thread is a daemon, because nothing wakes a
thread that waits for somebody at a keyboard.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

CHUNK_BYTES: Final = 256 * 1024
CHUNKS_COUNT_MAX: Final = 4


class Input:
    """Chunks of bytes as they come; to be made inside the event loop that it is read in."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        """`read` waits for the next bytes, and returns none at the end."""
        self._read = read
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._room = threading.Semaphore(CHUNKS_COUNT_MAX)
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._work, name="input", daemon=True).start()

    @property
    def is_waiting(self) -> bool:
        """Whether there is nothing to be had at once."""
        return self._chunks.empty()

    async def next(self) -> bytes:
        """The next bytes; none at the end."""
        chunk = await self._chunks.get()
        self._room.release()
        return chunk

    def _work(self) -> None:
        chunk = b"?"
        while chunk:
            self._room.acquire()
            try:
                chunk = self._read()
            except OSError:
                chunk = b""
            # When the loop is closed, nobody reads any more.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._chunks.put_nowait, chunk)
