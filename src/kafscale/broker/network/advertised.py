"""Where clients are told to connect to: this broker, and all the others.

The law: an answer that names this broker names it as the client can reach it: by what the settings
advertise for the listener, else by the address of ours at which the client has come. That is right
behind any number of addresses, and wherever nothing stands in between. Other brokers are named as
they registered, at the same listener; those that do not have it are not named.
"""

import msgspec

from kafscale.broker.requests.context import RequestContext
from kafscale.net.canonical_ip import canonical


class Node(msgspec.Struct, frozen=True, gc=False):
    """A broker, as a client is told of it."""

    id: int
    host: str
    port: int
    rack: str | None = None


def nodes(context: RequestContext) -> list[Node]:
    """All brokers that are alive, this one in any case."""
    others = context.broker.cluster.brokers
    return [
        found
        for number in sorted({*others, context.broker.node_id})
        if (found := node(context, number)) is not None
    ]


def node(context: RequestContext, broker_id: int) -> Node | None:
    """A broker that is alive; None for any other number."""
    broker = context.broker
    info = broker.cluster.brokers.get(broker_id)
    if broker_id == broker.node_id:
        host, port = advertised(context)
        return Node(broker_id, host, port, broker.config.broker.rack or None)
    address = None if info is None else info.address_at(context.client.listener.name)
    if info is None or address is None:
        return None
    return Node(info.id, *address, info.rack or None)


def advertised(context: RequestContext) -> tuple[str, int]:
    """The host and the port of this broker, for this client."""
    client = context.client
    listener = client.listener
    host = listener.advertised_host or canonical(client.served_host)
    return host, listener.advertised_port or client.served_port
