"""`WorkerProcess`: the broker's end of the pipes to the process that compacts.

The pipes are written and read in a thread, because a segment has up to hundreds of megabytes; a
system call on a pipe holds no lock of the interpreter. The process is started when it is first
needed. If it ends, or does not go on for ten minutes, the command fails, the process is killed, and
the next command starts another one.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

import msgspec

from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.storage.compaction.messages import Command, Failed, Reply
from kafscale.storage.compaction.worker import FRAME, read_frame

COMMAND: Final = (sys.executable, "-P", "-m", "kafscale.storage.compaction.worker")
STEP_SECONDS_MAX: Final = 600.0
"""How long the process may take to accept a part of a segment, or to reply. The largest segments,
compressed with gzip, take a minute; other processes may have the CPU first."""

_decode: Final = msgspec.msgpack.Decoder(Reply).decode

_Result = TypeVar("_Result")


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
        self.step_seconds_max = STEP_SECONDS_MAX
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
            await self._step(_write, process, memoryview(head))
            if chunks is not None:
                async for chunk in chunks:
                    await self._step(_write, process, chunk)
            frame = await self._step(_read, process)
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

    async def _step(self, step: Callable[..., _Result], *arguments: object) -> _Result:
        """Write to or read from a pipe, in a thread."""
        try:
            async with asyncio.timeout(self.step_seconds_max):
                return await asyncio.to_thread(step, *arguments)
        except TimeoutError as error:
            raise OperatingError(
                f"the compaction process did nothing for {self.step_seconds_max} s"
            ) from error

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            # A thread may still wait for one of the pipes, until the process has ended.
            asyncio.get_running_loop().run_in_executor(None, _clean_up, process)


def _start() -> subprocess.Popen[bytes]:
    # The environment of the broker may hold credentials.
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(  # noqa: S603 - the command is our own.
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )


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
