"""`Peers`: other brokers, for the steps of transactions between brokers.

Invariants of `ControlPlanePeers`: a connection is to the address in the broker's present
registration, and its requests name the broker; so an address that another broker has now is an
error, never a wrong recipient. A result has one code for each partition of the request.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kafscale.broker.transaction_coordinator.marker import Marker
from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.messages import AddPartitionsToTransactionRequest
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.net.address import Address

if TYPE_CHECKING:
    from kafscale.control_plane.client import ControlClient


class Peers(Protocol):
    """Other brokers, by id; every failure is a `KafscaleError`."""

    async def write_markers(self, broker_id: int, markers: Sequence[Marker]) -> Sequence[int]:
        """The error code of each partition of each marker, in order."""

    async def add_to_transaction(
        self, broker_id: int, request: AddPartitionsToTransactionRequest
    ) -> Sequence[int]:
        """The error code of each partition, in order."""

    async def close(self) -> None: ...


class _Connection(NamedTuple):
    address: Address
    client: "ControlClient"


class ControlPlanePeers:
    """Connections to the control planes of other brokers, which are opened when they are needed."""

    def __init__(self, cluster_cache: ClusterCache, tls: ClientTls | None) -> None:
        """`tls` is used if the control planes are encrypted."""
        self._cluster_cache = cluster_cache
        self._tls = tls
        self._connections: dict[int, _Connection] = {}

    async def write_markers(self, broker_id: int, markers: Sequence[Marker]) -> Sequence[int]:
        client = await self._client(broker_id)
        codes = await client.write_transaction_markers([marker.message for marker in markers])
        return _checked(codes, sum(len(marker.partitions) for marker in markers))

    async def add_to_transaction(
        self, broker_id: int, request: AddPartitionsToTransactionRequest
    ) -> Sequence[int]:
        client = await self._client(broker_id)
        codes = await client.add_partitions_to_transaction(request)
        return _checked(codes, len(request.partitions))

    async def close(self) -> None:
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            await connection.client.__aexit__()

    async def _client(self, broker_id: int) -> "ControlClient":
        broker = self._cluster_cache.brokers.get(broker_id)
        if broker is None:
            raise StoreUnavailableError(f"broker {broker_id} is not registered")
        address = Address(broker.control_host, broker.control_port)
        connection = self._connections.get(broker_id)
        if connection is not None:
            if connection.address == address:
                return connection.client
            del self._connections[broker_id]
            await connection.client.__aexit__()
        # gRPC is slow to import, and a single broker never needs it.
        from kafscale.control_plane.client import ControlClient  # noqa: PLC0415

        client = ControlClient(str(address), self._tls, str(broker_id))
        await client.__aenter__()
        other = self._connections.setdefault(broker_id, _Connection(address, client))
        if other.client is not client:
            # Another request has opened one meanwhile.
            await client.__aexit__()
        return other.client


def _checked(codes: Sequence[int], count: int) -> Sequence[int]:
    if len(codes) != count:
        raise StoreUnavailableError(f"{len(codes)} results instead of {count}")
    return codes
