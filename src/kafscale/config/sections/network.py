"""Settings of client connections and requests."""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.types import Duration, Integer, OptionalInteger, Size, StringList, Text
from kafscale.text.units import GIB, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS

_TIMEOUT = Duration(100, HOUR_MS, unit_in_name=False)


@dataclass(frozen=True, kw_only=True)
class Network:
    """What one broker takes from its clients."""

    connections_max: int = setting(10_000, Integer(1, 1_000_000), key="maxConnections")
    """The most client connections at once; further ones are closed as they arrive. 10,000 is far
    above what a healthy cluster needs and below what exhausts a broker."""

    connections_per_ip_max: int | None = setting(
        None, OptionalInteger(Integer(1, 1_000_000)), key="maxConnectionsPerIp"
    )
    """The most connections from one address; further ones are closed as they arrive. Empty, the
    default, bounds them by `maxConnections` alone, as in Kafka: many clients may share an
    address."""

    connections_per_ip_overrides: tuple[str, ...] = setting(
        (),
        StringList(Text("of the form address:count", r"[0-9A-Za-z.:%-]+:\d{1,6}")),
        key="maxConnectionsPerIpOverrides",
    )
    """The most connections from addresses that have a limit of their own: `10.0.0.7:500`. Empty is
    the default."""

    connection_rate_max: int | None = setting(
        None, OptionalInteger(Integer(1, 1_000_000)), key="maxConnectionCreationRate"
    )
    """How many new connections are taken in a second; further ones wait in the queue of the system.
    Empty, the default, takes all."""

    request_bytes_max: int = setting(100 * MIB, Size(KIB, 2 * GIB - 1), key="maxRequestSize")
    """The largest request, in bytes; a connection that announces a larger one is closed before
    anything is set aside for it. 100 MiB is Kafka's own limit."""

    socket_send_buffer_bytes: int = setting(MIB, Size(4 * KIB, GIB), key="socketSendBuffer")
    """The kernel's send buffer of a connection, in bytes. 1 MiB keeps a fast network busy while the
    broker prepares the next answer."""

    socket_receive_buffer_bytes: int = setting(MIB, Size(4 * KIB, GIB), key="socketReceiveBuffer")
    """The kernel's receive buffer of a connection, in bytes. 1 MiB takes in a typical batch at
    once."""

    connection_timeout_ms: int = setting(30 * SECOND_MS, _TIMEOUT, key="connectionTimeout")
    """How long a new connection may take to send its first whole request. 30s is patient with slow
    networks and still frees the place of a client that never speaks."""

    idle_timeout_ms: int = setting(10 * MINUTE_MS, _TIMEOUT, key="idleTimeout")
    """How long a connection may be silent before it is closed. 10 minutes, as in Kafka: clients
    that poll are never silent for so long."""

    in_flight_requests_max: int = setting(64, Integer(1, 10_000), key="maxInFlightRequests")
    """How many requests of one connection are worked on at once; further ones wait in the socket.
    64 is far above what Kafka's clients send, and bounds what one client may cost."""

    fetch_bytes_max: int = setting(55 * MIB, Size(KIB, GIB), key="maxFetchSize")
    """The largest answer to one fetch, in bytes, whatever the consumer asks for; one larger batch
    is still sent. 55 MiB is Kafka's own limit."""

    fetch_sessions_max: int = setting(1_000, Integer(0, 1_000_000), key="maxFetchSessions")
    """How many incremental fetch sessions are remembered; consumers beyond that send their whole
    list of partitions with each fetch. 1,000 is Kafka's own limit; 0 has none."""

    request_timeout_ms: int = setting(60 * SECOND_MS, _TIMEOUT, key="requestTimeout")
    """How long a request that brings no time limit of its own may take until its answer. A minute
    is twice the time after which Kafka's clients give up by default, so that the client is the one
    who decides."""
