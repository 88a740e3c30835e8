"""Settings of client connections and requests."""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.types import Duration, Integer, OptionalInteger, Size, StringList, Text
from kafscale.text.units import GIB, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS

_TIMEOUT = Duration(100, HOUR_MS, unit_in_name=False)


@dataclass(frozen=True, kw_only=True)
class Network:
    """Limits and timeouts of client connections."""

    connections_max: int = setting(10_000, Integer(1, 1_000_000), key="maxConnections")
    """The maximum number of client connections; a further one takes the place of the oldest that
    has sent no request, or, if all have, is closed immediately. 10,000 is more than a healthy
    cluster needs and less than what exhausts a broker."""

    connections_per_ip_max: int | None = setting(
        None, OptionalInteger(Integer(1, 1_000_000)), key="maxConnectionsPerIp"
    )
    """The maximum number of connections from one IP address; further ones are closed immediately.
    Empty, the default, applies `maxConnections` only, as in Kafka: many clients may share an
    address."""

    connections_per_ip_overrides: tuple[str, ...] = setting(
        (),
        StringList(Text("of the form address:count", r"[0-9A-Za-z.:%-]+:\d{1,6}")),
        key="maxConnectionsPerIpOverrides",
    )
    """Limits of single IP addresses, instead of `maxConnectionsPerIp`: `10.0.0.7:500`. Empty by
    default."""

    connection_rate_max: int | None = setting(
        None, OptionalInteger(Integer(1, 1_000_000)), key="maxConnectionCreationRate"
    )
    """The maximum number of new connections per second; further ones wait in the listen queue.
    Empty by default: no limit."""

    request_bytes_max: int = setting(100 * MIB, Size(KIB, 2 * GIB - 1), key="maxRequestSize")
    """The maximum request size in bytes; a connection that announces a larger request is closed
    before memory is allocated for it. 100 MiB, as in Kafka."""

    other_request_bytes_max: int = setting(
        2 * MIB, Size(KIB, 2 * GIB - 1), key="maxOtherRequestSize"
    )
    """The maximum size in bytes of a request that is not a Produce request; a connection that sends
    a larger one is closed. 2 MiB are enough for 20,000 partitions, the most that a request may
    name."""

    socket_send_buffer_bytes: int = setting(MIB, Size(4 * KIB, GIB), key="socketSendBuffer")
    """The socket send buffer (SO_SNDBUF) in bytes. 1 MiB keeps a fast network busy while the broker
    prepares the next response."""

    socket_receive_buffer_bytes: int = setting(MIB, Size(4 * KIB, GIB), key="socketReceiveBuffer")
    """The socket receive buffer (SO_RCVBUF) in bytes. 1 MiB holds a typical batch."""

    connection_timeout_ms: int = setting(30 * SECOND_MS, _TIMEOUT, key="connectionTimeout")
    """How long a new connection may take to send its first complete request. 30s tolerate slow
    networks and still release connections of clients that send nothing."""

    idle_timeout_ms: int = setting(10 * MINUTE_MS, _TIMEOUT, key="idleTimeout")
    """How long a connection may be idle before it is closed. 10 minutes, as in Kafka; consumers
    that poll are never idle for that time."""

    in_flight_requests_max: int = setting(64, Integer(1, 10_000), key="maxInFlightRequests")
    """The maximum number of concurrent requests of one connection; further ones wait in the socket.
    64 is far above what Kafka's clients send, and limits the memory that one client can use."""

    fetch_bytes_max: int = setting(55 * MIB, Size(KIB, GIB), key="maxFetchSize")
    """The maximum size of a fetch response in bytes, whatever the consumer requests; a single
    larger batch is still sent. 55 MiB, as in Kafka."""

    unsent_bytes_max: int = setting(256 * MIB, Size(MIB, 1024 * GIB), key="maxUnsentBytes")
    """The memory for responses that clients have not received yet, of all connections together.
    The less is left, the smaller fetch responses become; with nothing left, a response has one
    batch. 256 MiB let a consumer that catches up fetch `maxFetchSize` at once."""

    fetch_sessions_max: int = setting(1_000, Integer(0, 1_000_000), key="maxFetchSessions")
    """The maximum number of incremental fetch sessions; further consumers send their full list of
    partitions with each fetch. 1,000, as in Kafka; 0 disables fetch sessions."""

    request_timeout_ms: int = setting(60 * SECOND_MS, _TIMEOUT, key="requestTimeout")
    """The timeout of requests that have no timeout of their own. A minute is twice the default
    timeout of Kafka's clients, so that the client times out first."""
