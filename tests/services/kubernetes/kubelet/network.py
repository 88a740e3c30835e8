"""Addresses of pods, and the links that connect them with everybody else, over one bridge.

No address is given twice, so that nobody who remembers a former pod meets another one. The whole
range of Services is the test's own, and so is the bridge: see `namespaces`.
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
    """What connects a pod, by an address, until the pod is gone."""

    def __init__(self, index: int) -> None:
        self.address = "10.244.{}.{}".format(*divmod(256 + index, 256))
        self._name = f"pod{index}"

    async def connect(self, process: int) -> None:
        """Lead to the network namespace of a process."""
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

    async def cut(self) -> None:
        """Carry nothing any more, and say so to nobody."""
        await ip(f"link set {self._name} down")

    async def mend(self) -> None:
        await ip(f"link set {self._name} up")


class Network:
    """Hands out links."""

    def __init__(self) -> None:
        self._indexes = (index for index in itertools.count(2) if index % 256 not in {0, 255})

    async def open(self) -> None:
        """Have all addresses of Services lead here, listened on or not.

        A bridge takes the address of one of its links if it has none of its own; then pods that
        know the former one would reach nobody for a while whenever another pod comes or goes.
        """
        await ip(f"link set {BRIDGE} address {HARDWARE_ADDRESS}")
        await ip("link set lo up", f"address replace {SERVICE_RANGE} dev lo")

    def link(self) -> Link:
        return Link(next(self._indexes))


async def ip(*orders: str, process: int | None = None) -> None:
    """Give orders to the kernel's network, in the namespace of a process if one is given."""
    entering = [] if process is None else ["nsenter", f"--target={process}", "--net"]
    await asyncio.to_thread(_run, [*entering, "ip", "-batch", "-"], "\n".join(orders))


def _run(command: Sequence[str], given: str) -> None:
    program = shutil.which(command[0]) or command[0]
    done = subprocess.run(  # noqa: S603 - the command is our own.
        [program, *command[1:]], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{given}: {done.stderr}"
