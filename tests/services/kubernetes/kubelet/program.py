"""The program of a container at work: started by a shim, alone in its room, until it ends."""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from signal import SIGKILL, Signals
from typing import Self

import msgspec

from services.kubernetes.kubelet.order import Order, StartError
from services.kubernetes.kubelet.sandbox import SHIM


class Program:
    """Runs; `ended` waits for how it ends."""

    def __init__(self, shim: asyncio.subprocess.Process, process_id: int, order: Order) -> None:
        self._shim = shim
        self._process_id = process_id
        """Of the first process in the room; with it, all others end."""
        self._order = order

    @classmethod
    async def start(cls, order: Order, log: Path) -> Self:
        reading, writing = os.pipe()
        with log.open("ab") as output:
            shim = await asyncio.create_subprocess_exec(
                *SHIM,
                "container",
                str(writing),
                pass_fds=[writing],
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
        os.close(writing)
        try:
            assert shim.stdin is not None
            shim.stdin.write(msgspec.json.encode(order))
            shim.stdin.close()
            number, _, complaint = (await _read(reading)).decode().partition("\n")
        except asyncio.CancelledError:
            shim.kill()
            await shim.wait()
            raise
        if complaint or not number:
            await shim.wait()
            raise StartError("RunContainerError", complaint or "the shim has failed: see its log")
        return cls(shim, int(number), order)

    async def ended(self) -> int:
        """How it ended, as shells say it; a program that nobody waits for any more is killed."""
        try:
            return await self._shim.wait()
        except asyncio.CancelledError:
            self.signal(SIGKILL)
            await self._shim.wait()
            raise

    def signal(self, number: Signals) -> None:
        """Send a signal to the first process."""
        if self._shim.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process_id, number)

    def signal_all(self, number: Signals) -> None:
        """Send a signal to all processes in the room."""
        room = _room(self._process_id)
        for path in Path("/proc").iterdir():
            if room and path.name.isdigit() and _room(int(path.name)) == room:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(path.name), number)

    async def execute(self, command: Sequence[str]) -> tuple[int, str]:
        """Run another program in the room; how it ended, and what it said."""
        entered = await asyncio.create_subprocess_exec(
            "nsenter",
            f"--target={self._process_id}",
            "--mount",
            "--uts",
            "--ipc",
            "--net",
            "--pid",
            "--",
            *command,
            env=dict(self._order.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            said, _ = await entered.communicate()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(entered.pid, SIGKILL)  # Those who have entered, and who waits for them.
            await entered.communicate()
            raise
        assert entered.returncode is not None
        return entered.returncode, said.decode(errors="replace")


async def _read(descriptor: int) -> bytes:
    """All that comes out of a pipe."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    try:
        return await reader.read()
    finally:
        transport.close()


def _room(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/ns/pid").readlink().name
    except OSError:
        return ""
