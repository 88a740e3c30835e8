"""The brokers that own partitions, asked over the control plane: only owners change a partition.

The law: who owns a partition is asked, not assumed. An owner that has given it away says so; then
all brokers are asked anew, for as long as a partition may take to find its next owner.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final, Self

from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError, UnreachableError
from kafscale.control_plane.messages import (
    BrokerStatusResponse,
    BrokerSummary,
    SwapSegmentsResponse,
)
from kafscale.control_plane.partition import Partition
from kafscale.errors import KafscaleError, OperatingError

LOOKS_MAX: Final = 30
LOOK_PAUSE_SECONDS: Final = 1.0

_ELSEWHERE: Final = "FAILED_PRECONDITION"
_AWAY: Final = "UNAVAILABLE"


class Owners:
    """All brokers of a cluster, found through some whose addresses are given."""

    def __init__(
        self,
        addresses: Sequence[str],
        tls: ClientTls | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`tls` is what brokers are asked with, where the control plane is encrypted."""
        self._addresses = addresses
        self._tls = tls
        self._sleep = sleep
        self._stack = AsyncExitStack()
        self._clients: dict[str, ControlClient] = {}
        self._owned: dict[Partition, ControlClient] = {}

    async def __aenter__(self) -> Self:
        await self.look()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def look(self) -> None:
        """Ask all brokers what they own."""
        problems = []
        for address in self._addresses:
            try:
                first = await (await self._client(address)).status()
            except UnreachableError as error:
                problems.append(str(error))
                continue
            self._owned = {}
            self._learn(address, first)
            await asyncio.gather(
                *(self._ask(each) for each in first.brokers if each.broker_id != first.broker_id)
            )
            return
        raise OperatingError(
            "; ".join([*problems, "segments are swapped in by the brokers that own them"])
        )

    async def swap(self, partition: Partition, job: str) -> SwapSegmentsResponse:
        """Have the owner of a partition swap in what a job has staged."""
        problem: KafscaleError = OperatingError(f"no broker serves {partition}")
        for _ in range(LOOKS_MAX):
            owner = self._owned.get(partition)
            try:
                if owner is not None:
                    return await owner.swap_segments(partition, job)
            except ControlError as error:
                if not _may_pass(error):
                    raise
                problem = error
            await self._sleep(LOOK_PAUSE_SECONDS)
            try:
                await self.look()
            except OperatingError as error:
                problem = error
        raise problem

    async def _ask(self, broker: BrokerSummary) -> None:
        host = broker.control_host or broker.host
        if not (host and broker.control_port):
            return
        address = f"[{host}]" if ":" in host else host
        address = f"{address}:{broker.control_port}"
        try:
            self._learn(address, await (await self._client(address)).status())
        except ControlError:
            return  # What it owns is looked for again, if it is needed.

    def _learn(self, address: str, status: BrokerStatusResponse) -> None:
        for owned in status.partitions:
            if owned.leader:
                self._owned[Partition(owned.topic, owned.partition)] = self._clients[address]

    async def _client(self, address: str) -> ControlClient:
        if address not in self._clients:
            client = ControlClient(address, self._tls)
            self._clients[address] = await self._stack.enter_async_context(client)
        return self._clients[address]


def _may_pass(error: ControlError) -> bool:
    """Whether somebody else is to be asked, or the same broker again."""
    return error.status == _ELSEWHERE or (
        isinstance(error, UnreachableError) and error.status == _AWAY
    )
