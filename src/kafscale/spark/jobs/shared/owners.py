"""Finds the broker that owns a partition over the control plane, and asks it to swap segments.

Only the owner changes a partition. Ownership is queried, never assumed: a broker that no longer
owns a partition rejects the request. Then all brokers are queried again, for as long as a partition
may take to get its next owner.
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
    Partition,
    SwapSegmentsResponse,
)
from kafscale.errors import KafscaleError, OperatingError
from kafscale.net.address import Address

ATTEMPTS_MAX: Final = 30
RETRY_PAUSE_SECONDS: Final = 1.0

_NOT_OWNER: Final = "FAILED_PRECONDITION"
_UNAVAILABLE: Final = "UNAVAILABLE"


class PartitionOwners:
    """The owners of partitions in a cluster, found through the addresses of some brokers."""

    def __init__(
        self,
        addresses: Sequence[str],
        tls: ClientTls | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`tls` names the client files for an encrypted control plane."""
        self._addresses = addresses
        self._tls = tls
        self._sleep = sleep
        self._stack = AsyncExitStack()
        self._clients: dict[tuple[str, str], ControlClient] = {}
        self._owned: dict[Partition, ControlClient] = {}

    async def __aenter__(self) -> Self:
        await self.refresh()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def refresh(self) -> None:
        """Query all brokers for the partitions that they own."""
        problems = []
        for address in self._addresses:
            try:
                client = await self._client(address)
                first = await client.status()
            except UnreachableError as error:
                problems.append(str(error))
                continue
            self._owned = {}
            self._record(client, first)
            await asyncio.gather(
                *(self._query(each) for each in first.brokers if each.broker_id != first.broker_id)
            )
            return
        raise OperatingError(
            "; ".join(
                [*problems, "no broker responds; only brokers that own segments can swap them"]
            )
        )

    async def swap(
        self, partition: Partition, job: str, checksums: Sequence[int] = ()
    ) -> SwapSegmentsResponse:
        """Ask the owner of a partition to swap in the segments that a job has staged.

        It rejects the request unless the segments to be replaced have these checksums.
        """
        problem: KafscaleError = OperatingError(f"no broker serves {partition}")
        for _ in range(ATTEMPTS_MAX):
            owner = self._owned.get(partition)
            try:
                if owner is not None:
                    return await owner.swap_segments(partition, job, checksums)
            except ControlError as error:
                if not _is_transient(error):
                    raise
                problem = error
            await self._sleep(RETRY_PAUSE_SECONDS)
            try:
                await self.refresh()
            except OperatingError as error:
                problem = error
        raise problem

    async def _query(self, broker: BrokerSummary) -> None:
        host = broker.control_host or broker.host
        if not (host and broker.control_port):
            return
        address = str(Address(host, broker.control_port))
        try:
            client = await self._client(address, broker.broker_id)
            self._record(client, await client.status())
        except ControlError:
            return  # `swap` refreshes if it needs a partition of this broker.

    def _record(self, client: ControlClient, status: BrokerStatusResponse) -> None:
        for owned in status.partitions:
            if owned.leader:
                self._owned[Partition(owned.topic, owned.partition)] = client

    async def _client(self, address: str, broker_id: str = "") -> ControlClient:
        """A client of whichever broker is at an address, or of one broker only."""
        key = address, broker_id
        if key not in self._clients:
            client = ControlClient(address, self._tls, broker_id)
            self._clients[key] = await self._stack.enter_async_context(client)
        return self._clients[key]


def _is_transient(error: ControlError) -> bool:
    """Whether another broker, or the same broker later, may accept the request."""
    return error.status == _NOT_OWNER or (
        isinstance(error, UnreachableError) and error.status == _UNAVAILABLE
    )
