"""Addresses of pods, and their veth links to the bridge.

No address is used twice, so that a client of a former pod never reaches another one. The range of
Services and the bridge belong to the test: see `namespaces`.
"""

import asyncio
import itertools
import shutil
import subprocess
from collections.abc import Sequence

from services.kubernetes.namespaces import BRIDGE, GATEWAY, SERVICE_RANGE

HARDWARE_ADDRESS = "02:00:0a:f4:00:01"
"""Of the bridge."""


class Link:
    """The link of a pod, with an address, until the pod is gone."""

    def __init__(self, index: int) -> None:
        self.address = "10.244.{}.{}".format(*divmod(256 + index, 256))
        self._name = f"pod{index}"

    async def connect(self, process: int) -> None:
        """Connect the network namespace of a process."""
        await ip(
            f"link add {self._name} type veth peer name eth0 netns {process}",
            f"link set {self._name} master {BRIDGE} up",
        )
        await ip(
            "link set lo up",
            f"address add {self.address}/16 dev eth0",
            "link set eth0 up",
            f"route add default via {GATEWAY}",
            process=process,
        )

    async def disconnect(self) -> None:
        """Drop all traffic silently."""
        await ip(f"link set {self._name} down")

    async def reconnect(self) -> None:
        await ip(f"link set {self._name} up")


class Network:
    """Creates links."""

    def __init__(self) -> None:
        self._indexes = (index for index in itertools.count(2) if index % 256 not in {0, 255})

    async def open(self) -> None:
        """Route all addresses of Services to this machine.

        A bridge without an own hardware address takes that of one of its links; then pods that
        cached the former one could not reach it for a while whenever another pod starts or ends.
        """
        await ip(f"link set {BRIDGE} address {HARDWARE_ADDRESS}")
        await ip("link set lo up", f"address replace {SERVICE_RANGE} dev lo")

    def link(self) -> Link:
        return Link(next(self._indexes))


async def ip(*ip_commands: str, process: int | None = None) -> None:
    """Run `ip` commands, in the network namespace of a process if given."""
    prefix = [] if process is None else ["nsenter", f"--target={process}", "--net"]
    await asyncio.to_thread(_run, [*prefix, "ip", "-batch", "-"], "\n".join(ip_commands))


def _run(command: Sequence[str], commands: str) -> None:
    program = shutil.which(command[0]) or command[0]
    completed = subprocess.run(  # noqa: S603 - the command is our own.
        [program, *command[1:]], input=commands, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, f"{commands}: {completed.stderr}"
