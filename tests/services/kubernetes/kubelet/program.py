"""The program of a container: started by a shim in its own namespaces, until it exits."""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from signal import SIGKILL, Signals
from typing import Self

import msgspec

from services.kubernetes.kubelet.container_spec import ContainerSpec, StartError
from services.kubernetes.kubelet.sandbox import SHIM


class Program:
    """A running program."""

    def __init__(
        self, shim: asyncio.subprocess.Process, process_id: int, container_spec: ContainerSpec
    ) -> None:
        self._shim = shim
        self._process_id = process_id
        """Of process 1 in the pid namespace; all others end with it."""
        self._container_spec = container_spec

    @classmethod
    async def start(cls, container_spec: ContainerSpec, log: Path) -> Self:
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
            shim.stdin.write(msgspec.json.encode(container_spec))
            shim.stdin.close()
            number, _, error_message = (await _read(reading)).decode().partition("\n")
        except asyncio.CancelledError:
            shim.kill()
            await shim.wait()
            raise
        if error_message or not number:
            await shim.wait()
            raise StartError(
                "RunContainerError", error_message or "the shim has failed: see its log"
            )
        return cls(shim, int(number), container_spec)

    async def ended(self) -> int:
        """The exit code, as shells report it; a cancelled wait kills the program."""
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
        """Send a signal to all processes in the pid namespace."""
        pid_namespace = _pid_namespace(self._process_id)
        for path in Path("/proc").iterdir():
            if (
                pid_namespace
                and path.name.isdigit()
                and _pid_namespace(int(path.name)) == pid_namespace
            ):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(path.name), number)

    async def execute(self, command: Sequence[str]) -> tuple[int, str]:
        """Run another program in the namespaces; return its exit code and output."""
        process = await asyncio.create_subprocess_exec(
            "nsenter",
            f"--target={self._process_id}",
            "--mount",
            "--uts",
            "--ipc",
            "--net",
            "--pid",
            "--",
            *command,
            env=dict(self._container_spec.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)  # The program and nsenter.
            await process.communicate()
            raise
        assert process.returncode is not None
        return process.returncode, output.decode(errors="replace")


async def _read(descriptor: int) -> bytes:
    """All data of a pipe."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    try:
        return await reader.read()
    finally:
        transport.close()


def _pid_namespace(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/ns/pid").readlink().name
    except OSError:
        return ""
