"""All brokers of a cluster on the control plane, found through one that answers.

The law: a broker is asked at the address at which it has registered, but the one that answered
first at the address where it did: from outside, others may not be in reach, and that is told.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Self

from kafscale.client.errors import UnreachableError as NobodyAnswersError
from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import UnreachableError
from kafscale.control_plane.messages import BrokerStatusResponse, BrokerSummary
from kafscale.errors import KafscaleError
from kafscale.net.host_port import Address


class Cluster:
    """The brokers of a cluster, as one of them knows them."""

    def __init__(self, addresses: Sequence[Address], tls: ClientTls | None = None) -> None:
        """`tls` is what brokers are asked with, where the control plane is encrypted."""
        self._addresses = addresses
        self._tls = tls
        self._stack = AsyncExitStack()
        self._clients: dict[str, ControlClient] = {}
        self._first: BrokerStatusResponse | None = None

    async def __aenter__(self) -> Self:
        problems = []
        for address in self._addresses:
            client = await self._stack.enter_async_context(ControlClient(str(address), self._tls))
            try:
                self._first = await client.status(with_partitions=False)
            except UnreachableError as error:
                problems.append(str(error))
            else:
                self._clients[self._first.broker_id] = client
                return self
        await self._stack.aclose()
        raise NobodyAnswersError("\n".join([*problems, "start a broker with: kafscale broker"]))

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def first(self) -> BrokerStatusResponse:
        """How the broker does that has answered first; it knows the others."""
        assert self._first is not None, "not connected"
        return self._first

    @property
    def brokers(self) -> dict[str, BrokerSummary]:
        """All brokers that are alive, by their ids."""
        return {broker.broker_id: broker for broker in self.first.brokers}

    async def client(self, broker_id: str) -> ControlClient:
        """A client of one broker."""
        if broker_id in self._clients:
            return self._clients[broker_id]
        broker = self.brokers.get(broker_id)
        if broker is None:
            known = ", ".join(self.brokers) or "none"
            raise KafscaleError(f"there is no broker {broker_id}; the brokers are: {known}")
        if not broker.control_port:
            raise KafscaleError(f"broker {broker_id} has not said where its control plane is")
        address = str(Address(broker.control_host or broker.host, broker.control_port))
        client = await self._stack.enter_async_context(ControlClient(address, self._tls))
        self._clients[broker_id] = client
        return client

    async def controller(self) -> ControlClient:
        """A client of the controller."""
        if not self.first.controller_id:
            raise KafscaleError("the cluster has no controller at the moment; try again")
        return await self.client(self.first.controller_id)

    async def statuses(
        self, *, with_partitions: bool
    ) -> dict[str, BrokerStatusResponse | KafscaleError]:
        """How every broker does, asked all at once, or why it does not say."""
        broker_ids = sorted({self.first.broker_id, *self.brokers}, key=int)
        answers = await asyncio.gather(
            *(self._status(broker_id, with_partitions) for broker_id in broker_ids)
        )
        return dict(zip(broker_ids, answers, strict=True))

    async def _status(
        self, broker_id: str, with_partitions: bool
    ) -> BrokerStatusResponse | KafscaleError:
        try:
            client = await self.client(broker_id)
            return await client.status(with_partitions=with_partitions)
        except KafscaleError as error:
            return error
