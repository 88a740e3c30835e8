"""Settings of the commands that connect to brokers."""

from dataclasses import dataclass, field

from kafscale.config.schema import setting
from kafscale.config.sections.security import MECHANISMS, PROTOCOLS, ClientTls
from kafscale.config.types import Boolean, Choice, Duration, StringList, Text
from kafscale.text.units import HOUR_MS, SECOND_MS

_GROUP_TIMEOUT = Duration(SECOND_MS, HOUR_MS)
_SERVERS = StringList(
    Text("of the form host:port or host", r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/@,]+)(:\d{1,5})?")
)


@dataclass(frozen=True, kw_only=True)
class Client:
    """The commands that talk to brokers, such as `kafscale topic` and `kafscale consume`."""

    bootstrap_servers: tuple[str, ...] = setting(
        ("localhost:9092",), _SERVERS, variables=("KAFSCALE_BOOTSTRAP_SERVERS",)
    )
    """The brokers to ask first; one that answers is enough. By default the one on this machine,
    where `kafscale broker` without settings serves."""

    security_protocol: str = setting("PLAINTEXT", Choice(PROTOCOLS))
    """How to talk to the brokers: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. PLAINTEXT, as brokers
    serve by default."""

    sasl_mechanism: str = setting("SCRAM-SHA-512", Choice(MECHANISMS))
    """How to show who asks, where the protocol is SASL_PLAINTEXT or SASL_SSL. SCRAM-SHA-512 never
    sends the password."""

    username: str = setting("", Text(optional=True))
    """The user to log in as, with PLAIN and SCRAM. Empty is the default."""

    password: str = setting("", Text(optional=True), secret=True)
    """The password of that user. Empty is the default."""

    token_file: str = setting("", Text("a file", optional=True))
    """A file with the token to log in with, for OAUTHBEARER; read anew for each connection. Empty
    is the default."""

    tls: ClientTls = field(default_factory=ClientTls)

    control_tls: bool = setting(False, Boolean())
    """Whether the control plane is asked over TLS, with the files of `client.tls`. False, as
    brokers serve it by default."""

    control_servers: tuple[str, ...] = setting(
        ("localhost:9093",), _SERVERS, variables=("KAFSCALE_CONTROL_SERVERS",)
    )
    """The brokers to ask first on the control plane, as `kafscale cluster` does; one that answers
    is enough, and knows the others. By default the one on this machine, at its port for metrics."""


@dataclass(frozen=True, kw_only=True)
class Consumer:
    """Our own consumer, `kafscale consume --group`, as a member of a group.

    Other consumers bring settings of their own; what they may ask for is said in `group`.
    """

    session_timeout_ms: int = setting(30_000, _GROUP_TIMEOUT)
    """How long it may be silent before the group goes on without it. In milliseconds; 30 seconds
    survive a pause or a short loss of the network without a rebalance."""

    heartbeat_interval_ms: int = setting(3_000, Duration(100, HOUR_MS))
    """How often it shows that it is alive. In milliseconds; 3 seconds fit ten times into a
    session, so that a few lost heartbeats do no harm."""

    rebalance_timeout_ms: int = setting(60_000, _GROUP_TIMEOUT)
    """How long a rebalance waits for it to join again. In milliseconds; 60 seconds let it finish
    the records that it has in hand."""

    max_poll_interval_ms: int = setting(300_000, Duration(SECOND_MS, 24 * HOUR_MS))
    """How long it may work on what it has read before it leaves the group. In milliseconds; 5
    minutes is what Kafka's consumers use themselves."""
