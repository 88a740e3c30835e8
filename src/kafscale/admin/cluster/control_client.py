"""Control plane clients for all brokers of a cluster, found through the first that responds.

Each broker is called at the address that it has registered, except the first: it is called at the
address that worked. From outside the cluster other brokers may be unreachable; this is reported.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Self

from kafscale.client.errors import UnreachableError as ClusterUnreachableError
from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import UnreachableError
from kafscale.control_plane.messages import BrokerStatusResponse, BrokerSummary
from kafscale.errors import KafscaleError
from kafscale.net.address import Address


class ClusterControlClient:
    """The brokers of a cluster, as known by the first that responded."""

    def __init__(self, addresses: Sequence[Address], tls: ClientTls | None = None) -> None:
        """`tls` is used if the control plane is encrypted."""
        self._addresses = addresses
        self._tls = tls
        self._stack = AsyncExitStack()
        self._clients: dict[str, ControlClient] = {}
        self._first_status: BrokerStatusResponse | None = None

    async def __aenter__(self) -> Self:
        problems = []
        for address in self._addresses:
            client = await self._stack.enter_async_context(ControlClient(str(address), self._tls))
            try:
                self._first_status = await client.status(with_partitions=False)
            except UnreachableError as error:
                problems.append(str(error))
            else:
                self._clients[self._first_status.broker_id] = client
                return self
        await self._stack.aclose()
        raise ClusterUnreachableError(
            "\n".join([*problems, "start a broker with: kafscale broker"])
        )

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def first_status(self) -> BrokerStatusResponse:
        """The status of the broker that responded first; it lists the others."""
        assert self._first_status is not None, "not connected"
        return self._first_status

    @property
    def brokers(self) -> dict[str, BrokerSummary]:
        """All live brokers by their ids."""
        return {broker.broker_id: broker for broker in self.first_status.brokers}

    async def client(self, broker_id: str) -> ControlClient:
        if broker_id in self._clients:
            return self._clients[broker_id]
        broker = self.brokers.get(broker_id)
        if broker is None:
            known = ", ".join(self.brokers) or "none"
            raise KafscaleError(f"there is no broker {broker_id}; the brokers are: {known}")
        if not broker.control_port:
            raise KafscaleError(f"broker {broker_id} has registered no control plane address")
        address = str(Address(broker.control_host or broker.host, broker.control_port))
        client = await self._stack.enter_async_context(ControlClient(address, self._tls, broker_id))
        self._clients[broker_id] = client
        return client

    async def controller(self) -> ControlClient:
        if not self.first_status.controller_id:
            raise KafscaleError("the cluster has no controller at the moment; try again")
        return await self.client(self.first_status.controller_id)

    async def statuses(
        self, *, with_partitions: bool
    ) -> dict[str, BrokerStatusResponse | KafscaleError]:
        """Query all brokers concurrently; brokers that fail have their error as value."""
        broker_ids = sorted({self.first_status.broker_id, *self.brokers}, key=int)
        responses = await asyncio.gather(
            *(self._status(broker_id, with_partitions) for broker_id in broker_ids)
        )
        return dict(zip(broker_ids, responses, strict=True))

    async def _status(
        self, broker_id: str, with_partitions: bool
    ) -> BrokerStatusResponse | KafscaleError:
        try:
            client = await self.client(broker_id)
            return await client.status(with_partitions=with_partitions)
        except KafscaleError as error:
            return error
