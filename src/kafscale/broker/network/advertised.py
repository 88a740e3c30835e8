"""The advertised addresses of brokers, as a client can reach them.

Invariant: a response names this broker by the advertised address of the client's listener, else by
the local address that the client connected to. The latter is right on a host with any number of
addresses, as long as there is no proxy or NAT in between. Other brokers are named by their
registered address of the same listener; brokers without that listener are left out.
"""

import msgspec

from kafscale.broker.requests.context import RequestContext
from kafscale.net.address import canonical_ip


class Node(msgspec.Struct, frozen=True, gc=False):
    """A broker in a response."""

    id: int
    host: str
    port: int
    rack: str | None = None


def nodes(context: RequestContext) -> list[Node]:
    """All live brokers, including this one."""
    others = context.broker.cluster.brokers
    return [
        broker
        for broker_id in sorted({*others, context.broker.node_id})
        if (broker := node(context, broker_id)) is not None
    ]


def node(context: RequestContext, broker_id: int) -> Node | None:
    """The live broker with this id, or None."""
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
    """The host and port of this broker for this client."""
    client = context.client
    listener = client.listener
    host = listener.advertised_host or canonical_ip(client.local_host)
    return host, listener.advertised_port or client.local_port
