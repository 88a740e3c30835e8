"""The addresses of a broker: those that it listens on, and those that it registers."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafscale import __version__
from kafscale.aio.clock import clock
from kafscale.broker.cluster import broker_id
from kafscale.broker.network.listener_config import Listener
from kafscale.broker.network.sockets import reachable_host
from kafscale.config import Config
from kafscale.metadata.schema.model import BrokerInfo, ListenerEndpoint
from kafscale.net.address import Address


@dataclass(frozen=True, kw_only=True)
class Addresses:
    """The addresses that a broker listens on."""

    clients: Mapping[Listener, Address]
    """By listener; the broker registers under the first one."""

    @property
    def first(self) -> Address:
        return next(iter(self.clients.values()))


def broker_info(config: Config, addresses: Addresses, node_id: int) -> BrokerInfo:
    """The registration of this broker, for other brokers and their clients."""
    endpoints = tuple(
        ListenerEndpoint(
            listener.name,
            listener.advertised_host or reachable_host(host),
            listener.advertised_port or port,
            str(listener.protocol),
        )
        for listener, (host, port) in addresses.clients.items()
    )
    first = endpoints[0]
    return BrokerInfo(
        id=node_id,
        epoch=0,
        host=first.host,
        port=first.port,
        endpoints=endpoints,
        rack=config.broker.rack,
        version=__version__,
        started_ms=clock(),
        location=broker_id.process_location(addresses.first),
    )
