"""Settings of the commands that connect to brokers, and of the MCP server."""

from dataclasses import dataclass, field, replace

from kafscale.config.schema import setting
from kafscale.config.sections.security import FILE, MECHANISMS, PROTOCOLS, ClientTls
from kafscale.config.types import HOST, PORT, Boolean, Choice, Duration, StringList, Text
from kafscale.text.units import HOUR_MS, SECOND_MS

_GROUP_TIMEOUT = Duration(SECOND_MS, HOUR_MS)
_SERVERS = StringList(
    Text("of the form host:port or host", r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/@,]+)(:\d{1,5})?")
)


@dataclass(frozen=True, kw_only=True)
class ControlTls:
    """TLS of the commands that connect to the control plane of brokers."""

    enabled: bool = setting(False, Boolean())
    """Whether to connect with TLS, as brokers with `control.tls` require. False, the default of
    brokers."""

    ca_file: str = setting("", FILE)
    """The CA certificates that verify brokers, as PEM. Empty, the default, uses
    `client.tls.caFile`."""

    cert_file: str = setting("", FILE)
    """The client certificate, as PEM. Empty, the default, uses that of `client.tls`, with its
    key."""

    key_file: str = setting("", FILE)
    """The private key of the certificate, as PEM. Empty, the default, reads it from `certFile`."""

    def completed(self, tls: ClientTls) -> ClientTls:
        """These settings, with those of `client.tls` where they are empty."""
        pair = self if self.cert_file else tls
        return replace(
            tls,
            ca_file=self.ca_file or tls.ca_file,
            cert_file=pair.cert_file,
            key_file=pair.key_file,
        )


@dataclass(frozen=True, kw_only=True)
class Client:
    """The commands that connect to brokers, such as `kafscale topic` and `kafscale consume`."""

    bootstrap_servers: tuple[str, ...] = setting(
        ("localhost:9092",), _SERVERS, variables=("KAFSCALE_BOOTSTRAP_SERVERS",)
    )
    """The brokers to connect to first; one reachable broker is enough. By default the local broker,
    as started by `kafscale broker` without settings."""

    security_protocol: str = setting("PLAINTEXT", Choice(PROTOCOLS))
    """The security protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. PLAINTEXT, the default of
    brokers."""

    sasl_mechanism: str = setting("SCRAM-SHA-512", Choice(MECHANISMS))
    """The SASL mechanism for SASL_PLAINTEXT and SASL_SSL. SCRAM-SHA-512 does not send the
    password."""

    username: str = setting("", Text(optional=True))
    """The user for PLAIN and SCRAM. Empty by default."""

    password: str = setting("", Text(optional=True), secret=True)
    """The password of that user. Empty by default."""

    token_file: str = setting("", Text("a file", optional=True))
    """A file with the token for OAUTHBEARER; read again for every connection. Empty by default."""

    tls: ClientTls = field(default_factory=ClientTls)

    control_tls: ControlTls = field(default_factory=ControlTls)

    control_servers: tuple[str, ...] = setting(
        ("localhost:9095",), _SERVERS, variables=("KAFSCALE_CONTROL_SERVERS",)
    )
    """The brokers to connect to first on the control plane, as `kafscale cluster` does; one
    reachable broker is enough. By default the local broker."""

    @property
    def effective_control_tls(self) -> ClientTls | None:
        """The TLS settings for the control plane; None without TLS."""
        return self.control_tls.completed(self.tls) if self.control_tls.enabled else None


@dataclass(frozen=True, kw_only=True)
class Consumer:
    """The consumer of `kafscale consume --group`.

    Other consumers have settings of their own; `group` limits what they may request.
    """

    session_timeout_ms: int = setting(30_000, _GROUP_TIMEOUT)
    """How long the consumer may miss heartbeats before it is removed from the group. In
    milliseconds. 30 seconds tolerate a pause or a short network outage without a rebalance."""

    heartbeat_interval_ms: int = setting(3_000, Duration(100, HOUR_MS))
    """The interval of heartbeats. In milliseconds. 3 seconds allow several lost heartbeats in a
    session."""

    rebalance_timeout_ms: int = setting(60_000, _GROUP_TIMEOUT)
    """How long a rebalance waits for the consumer to join again. In milliseconds. 60 seconds let it
    finish its current records."""

    max_poll_interval_ms: int = setting(300_000, Duration(SECOND_MS, 24 * HOUR_MS))
    """The maximum time between two polls before the consumer leaves the group. In milliseconds. 5
    minutes, as in Kafka's consumers."""


@dataclass(frozen=True, kw_only=True)
class Mcp:
    """The MCP server, `kafscale mcp`."""

    allow_writes: bool = setting(False, Boolean())
    """Whether the server offers tools that change the cluster. False, because read-only tools
    cannot do damage."""

    token: str = setting("", Text(optional=True), secret=True)
    """The bearer token that HTTP clients must send, of at least 32 characters. There is no default,
    and without a token nothing is served over HTTP."""

    host: str = setting("127.0.0.1", HOST)
    """The address of the HTTP server. Only the local machine by default."""

    port: int = setting(8811, PORT)
    """The port of the HTTP server; 0 takes any free port. 8811 is rarely used by other software."""
