"""The network, host name and shared memory of a pod, held by an idle process."""

import asyncio
import contextlib
import sys
from pathlib import Path

from services.kubernetes.kubelet.network import Link

SHIM = (sys.executable, "-I", "-S", str(Path(__file__).with_name("shim.py")))


class Sandbox:
    """What the containers of a pod share."""

    def __init__(self, name: str, link: Link) -> None:
        self.link = link
        self._name = name
        self._process: asyncio.subprocess.Process | None = None

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def open(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *SHIM,
            "sandbox",
            self._name,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert await self._process.stdout.readline() == b"ready\n"
        await self.link.connect(self.process_id)

    async def close(self) -> None:
        """Kill it; its link is removed with it."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.communicate()
