"""`WorkerProcess`: the broker's end of the pipes to the process that compacts.

The pipes are written and read in a thread, because a segment has up to hundreds of megabytes; a
system call on a pipe holds no lock of the interpreter. The process is started when it is first
needed. If it ends, the command fails, and the next one starts another process.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.storage.compaction.messages import Command, Failed, Reply
from kafscale.storage.compaction.worker import FRAME, read_frame

_COMMAND: Final = (sys.executable, "-P", "-m", "kafscale.storage.compaction.worker")
_decode: Final = msgspec.msgpack.Decoder(Reply).decode


class Worker(Protocol):
    """Runs a `LogCleaner`."""

    async def request(
        self, command: Command, chunks: AsyncIterator[memoryview] | None = None, size_bytes: int = 0
    ) -> tuple[Reply, memoryview]:
        """Send a command with the bytes of a segment; return the reply and its bytes.

        Raises `DamagedObjectError` if the segment cannot be read.
        """

    def close(self) -> None:
        """End it; the next request starts another one."""


class WorkerProcess:
    """A `LogCleaner` in a process of its own."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    async def request(
        self, command: Command, chunks: AsyncIterator[memoryview] | None = None, size_bytes: int = 0
    ) -> tuple[Reply, memoryview]:
        try:
            if self._process is None:
                self._process = await asyncio.to_thread(_start)
            process = self._process
            encoded = msgspec.msgpack.encode(command)
            head = FRAME.pack(len(encoded), size_bytes) + encoded
            await asyncio.to_thread(_write, process, memoryview(head))
            if chunks is not None:
                async for chunk in chunks:
                    await asyncio.to_thread(_write, process, chunk)
            frame = await asyncio.to_thread(_read, process)
        except BaseException as error:
            self.close()  # A command or reply may be incomplete.
            if isinstance(error, OSError):
                raise OperatingError(f"the compaction process has failed: {error}") from error
            raise
        if frame is None:
            self.close()
            raise OperatingError("the compaction process has ended; its errors are in the log")
        reply, data = frame
        if isinstance(reply, Failed):
            raise DamagedObjectError(reply.key, reply.reason)
        return reply, data

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            # A thread may still wait for one of the pipes, until the process has ended.
            asyncio.get_running_loop().run_in_executor(None, _clean_up, process)


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603


def _write(process: subprocess.Popen[bytes], data: memoryview) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def _read(process: subprocess.Popen[bytes]) -> tuple[Reply, memoryview] | None:
    assert process.stdout is not None
    return read_frame(process.stdout, _decode)


def _clean_up(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(OSError):  # What is in the buffer cannot be written any more.
            pipe.close()
