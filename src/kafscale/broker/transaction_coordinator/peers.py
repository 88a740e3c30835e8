"""`Peers`: other brokers, for the steps of transactions between brokers.

Invariants of `ControlPlanePeers`: a connection is to the present registration of the broker, and
its requests name the broker; so an address that another broker has now is an error, never a wrong
recipient. A connection that does not answer in time is replaced: the machine at its other end may
be gone. Verification has connections of its own, so that it does not wait for markers, which wait
for the bucket. A result has one code for each partition of the request.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kafscale.broker.transaction_coordinator.marker import Marker
from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.messages import AddPartitionsToTransactionRequest
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.net.address import Address

if TYPE_CHECKING:
    from kafscale.control_plane.client import ControlClient

MARKER_SECONDS_MAX: Final = 15.0
"""A little longer than a broker takes to answer; see `MarkerWriter`."""


class Peers(Protocol):
    """Other brokers, by id; every failure is a `KafscaleError`."""

    async def write_markers(self, broker_id: int, markers: Sequence[Marker]) -> Sequence[int]:
        """The error code of each partition of each marker, in order."""

    async def add_to_transaction(
        self, broker_id: int, request: AddPartitionsToTransactionRequest
    ) -> Sequence[int]:
        """The error code of each partition, in order."""

    async def close(self) -> None: ...


class ControlPlanePeers:
    """The control planes of other brokers, to which it connects when they are needed."""

    def __init__(
        self,
        cluster_cache: ClusterCache,
        tls: ClientTls | None,
        *,
        marker_seconds_max: float = MARKER_SECONDS_MAX,
    ) -> None:
        """`tls` is used if the control planes are encrypted."""
        self._marker_seconds_max = marker_seconds_max
        self._for_markers = _Connections(cluster_cache, tls)
        self._for_verification = _Connections(cluster_cache, tls)

    async def write_markers(self, broker_id: int, markers: Sequence[Marker]) -> Sequence[int]:
        messages = [marker.message for marker in markers]
        codes = await self._for_markers.call(
            broker_id,
            lambda client: client.write_transaction_markers(messages, self._marker_seconds_max),
        )
        return _checked(codes, sum(len(marker.partitions) for marker in markers))

    async def add_to_transaction(
        self, broker_id: int, request: AddPartitionsToTransactionRequest
    ) -> Sequence[int]:
        codes = await self._for_verification.call(
            broker_id, lambda client: client.add_partitions_to_transaction(request)
        )
        return _checked(codes, len(request.partitions))

    async def close(self) -> None:
        await self._for_markers.close()
        await self._for_verification.close()


class _Registration(NamedTuple):
    """What a connection is to: a broker that registers again may be another machine."""

    address: Address
    epoch: int

    @classmethod
    def of(cls, broker: BrokerInfo) -> "_Registration":
        return cls(Address(broker.control_host, broker.control_port), broker.epoch)


class _Connection(NamedTuple):
    registration: _Registration
    client: "ControlClient"


class _Connections:
    """At most one connection to each broker."""

    def __init__(self, cluster_cache: ClusterCache, tls: ClientTls | None) -> None:
        self._cluster_cache = cluster_cache
        self._tls = tls
        self._by_broker: dict[int, _Connection] = {}

    async def call(
        self, broker_id: int, request: Callable[["ControlClient"], Awaitable[Sequence[int]]]
    ) -> Sequence[int]:
        """Send a request; a connection on which it times out is closed."""
        # gRPC is slow to import, and a single broker never needs it.
        from kafscale.control_plane.errors import UnreachableError  # noqa: PLC0415

        client = await self._client(broker_id)
        try:
            return await request(client)
        except UnreachableError as error:
            if error.is_timeout:
                await self._close(broker_id, client)
            raise

    async def close(self) -> None:
        for broker_id, connection in list(self._by_broker.items()):
            await self._close(broker_id, connection.client)

    async def _client(self, broker_id: int) -> "ControlClient":
        broker = self._cluster_cache.brokers.get(broker_id)
        if broker is None:
            raise StoreUnavailableError(f"broker {broker_id} is not registered")
        registration = _Registration.of(broker)
        connection = self._by_broker.get(broker_id)
        if connection is not None:
            if connection.registration == registration:
                return connection.client
            await self._close(broker_id, connection.client)
        from kafscale.control_plane.client import ControlClient  # noqa: PLC0415

        client = ControlClient(str(registration.address), self._tls, str(broker_id))
        await client.__aenter__()
        other = self._by_broker.setdefault(broker_id, _Connection(registration, client))
        if other.client is not client:
            # Another request has opened one meanwhile.
            await client.__aexit__()
        return other.client

    async def _close(self, broker_id: int, client: "ControlClient") -> None:
        """Close a connection; requests that wait on it fail."""
        connection = self._by_broker.get(broker_id)
        if connection is not None and connection.client is client:
            del self._by_broker[broker_id]
            await client.__aexit__()


def _checked(codes: Sequence[int], count: int) -> Sequence[int]:
    if len(codes) != count:
        raise StoreUnavailableError(f"{len(codes)} results instead of {count}")
    return codes
