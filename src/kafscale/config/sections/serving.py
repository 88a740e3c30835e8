"""Settings of what faces people and programs: listeners, logs, operator and commands.

The law: a string under each field says what it means, its unit and why its default is what it is;
the documentation is made from these strings.
"""

from dataclasses import dataclass, field

from kafscale.config.schema import setting
from kafscale.config.sections.security import ADDRESS, MECHANISMS, PROTOCOLS, ClientTls
from kafscale.config.sections.stores import ENDPOINT
from kafscale.config.types import Choice, Duration, Flag, Names, Number, OptionalNumber, Size, Text
from kafscale.text.units import GIB, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS

_HOST = Text("a host name or an address", r"[0-9A-Za-z._:%-]+")
_PORT = Number(0, 65535)
_DNS_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_IMAGE = Text("the name of an image, with its tag or digest", r"\S+")
_LISTENER = r"[A-Za-z0-9_-]+://(\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z._-]*):PORT"
_TIMEOUT = Duration(100, HOUR_MS, unit_in_name=False)
_GROUP_TIMEOUT = Duration(SECOND_MS, HOUR_MS)
_SERVERS = Names(
    Text("of the form host:port or host", r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/@,]+)(:\d{1,5})?")
)


@dataclass(frozen=True, kw_only=True)
class Broker:
    """Who this broker is and where it listens."""

    id: int | None = setting(None, OptionalNumber(Number(0, 2**31 - 1)))
    """The number that clients and other brokers know this broker by. Empty takes the number at the
    end of the host name, which is how a StatefulSet counts its pods: the default, so that all
    brokers of a cluster can share one file."""

    rack: str = setting("", Text(optional=True))
    """The rack or zone that this broker stands in. Partitions are spread over zones as evenly as
    over brokers. Empty, the default, knows of none."""

    lease_ttl_ms: int = setting(10 * SECOND_MS, Duration(SECOND_MS, 10 * MINUTE_MS))
    """How long the others wait for a broker that is silent before they take over what it owns. In
    milliseconds; 10 seconds outlast a hiccup of etcd or of the network, and bound how long
    partitions of a dead broker are out of reach."""

    host: str = setting("0.0.0.0", _HOST)  # noqa: S104 - a broker exists to be reached.
    """The address on which Kafka clients are served. The default is every address, because inside a
    pod the outside decides who may connect."""

    port: int = setting(9092, _PORT)
    """The port on which Kafka clients are served; 0 takes any free one. 9092 is where Kafka clients
    look."""

    advertised_host: str = setting(
        "", Text("a host name or an address", r"[0-9A-Za-z._:%-]+", optional=True)
    )
    """The name under which clients reach this broker. Empty, the default, tells each client the
    address at which it has come, which is right wherever nothing stands in between."""

    advertised_port: int | None = setting(None, OptionalNumber(Number(1, 65535)))
    """The port under which clients reach this broker. Empty, the default, tells each client the
    port at which it has come."""

    security_protocol: str = setting("PLAINTEXT", Choice(PROTOCOLS))
    """How clients are served on that port: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. PLAINTEXT,
    because a first try has neither certificates nor users."""

    listeners: tuple[str, ...] = setting(
        (), Names(Text("of the form NAME://host:port", _LISTENER.replace("PORT", r"\d{1,5}")))
    )
    """Several listeners for clients, in place of `host` and `port`, each with a name:
    `INTERNAL://:9092,EXTERNAL://:9094`. Without a host every address is served; port 0 takes any
    free one. Empty, the default, has the one listener."""

    advertised_listeners: tuple[str, ...] = setting(
        (), Names(Text("of the form NAME://host:port", _LISTENER.replace("PORT", r"\d{1,5}")))
    )
    """The names under which clients reach those listeners: `EXTERNAL://broker-0.example.com:9094`.
    A client is told of all brokers by the addresses of the listener at which it has come. For
    listeners that are not in here, the same holds as for an empty `advertisedHost`."""

    listener_security_protocol_map: tuple[str, ...] = setting(
        (), Names(Text("of the form NAME:PROTOCOL", rf"[A-Za-z0-9_-]+:({'|'.join(PROTOCOLS)})"))
    )
    """How each of the listeners is served: `INTERNAL:PLAINTEXT,EXTERNAL:SASL_SSL`. A listener whose
    name is that of a protocol needs no entry; empty is the default."""

    data_dir: str = setting("kafscale-data", Text("a directory"), variables=("KAFSCALE_DATA_DIR",))
    """The directory of the embedded mode: objects and metadata of a broker that has neither a
    bucket nor etcd. Below the working directory by default, so that a first try needs no rights
    and is easily thrown away."""

    metrics_host: str = setting("0.0.0.0", _HOST)  # noqa: S104
    """The address on which metrics and health checks are served. Every address by default, because
    Prometheus and the kubelet call from outside the pod."""

    metrics_port: int = setting(9093, _PORT)
    """The port on which metrics and health checks are served; 0 takes any free one. 9093 is the
    port next to Kafka's."""

    control_host: str = setting("0.0.0.0", _HOST)  # noqa: S104
    """The address of a listener for the control plane alone, where `controlPort` asks for one.
    Every address by default, because the operator and the console call from outside the pod."""

    control_port: int | None = setting(None, OptionalNumber(_PORT))
    """The port of a listener for the control plane alone; 0 takes any free one. Empty, the default,
    serves it on the port of the metrics only, so that there is one port less to open."""

    drain_timeout_sec: int = setting(20, Duration(0, 3600, unit="s"))
    """How long a stopping broker hands over what it owns to others, before it leaves the rest to
    them. In seconds; 20 fit into the 30 that Kubernetes gives a pod."""

    allow_admin_apis: bool = setting(True, Flag(), variables=("KAFSCALE_ALLOW_ADMIN_APIS",))
    """Whether clients may create, change and delete topics. True, because Kafka's own tools expect
    it; false leaves that to the operator."""

    startup_timeout_sec: int = setting(
        30, Duration(1, 3600, unit="s"), variables=("KAFSCALE_STARTUP_TIMEOUT_SEC",)
    )
    """How long a starting broker waits for its stores before it gives up and exits. In seconds; 30
    outlasts a restart of etcd, and a wrong address still shows soon."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """What one broker takes from its clients."""

    connections_max: int = setting(10_000, Number(1, 1_000_000), key="maxConnections")
    """The most client connections at once; further ones are closed as they arrive. 10,000 is far
    above what a healthy cluster needs and below what exhausts a broker."""

    connections_per_ip_max: int | None = setting(
        None, OptionalNumber(Number(1, 1_000_000)), key="maxConnectionsPerIp"
    )
    """The most connections from one address; further ones are closed as they arrive. Empty, the
    default, bounds them by `maxConnections` alone, as in Kafka: many clients may share an
    address."""

    connections_per_ip_overrides: tuple[str, ...] = setting(
        (),
        Names(Text("of the form address:count", r"[0-9A-Za-z.:%-]+:\d{1,6}")),
        key="maxConnectionsPerIpOverrides",
    )
    """The most connections from addresses that have a limit of their own: `10.0.0.7:500`. Empty is
    the default."""

    connection_rate_max: int | None = setting(
        None, OptionalNumber(Number(1, 1_000_000)), key="maxConnectionCreationRate"
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

    in_flight_requests_max: int = setting(64, Number(1, 10_000), key="maxInFlightRequests")
    """How many requests of one connection are worked on at once; further ones wait in the socket.
    64 is far above what Kafka's clients send, and bounds what one client may cost."""

    fetch_bytes_max: int = setting(55 * MIB, Size(KIB, GIB), key="maxFetchSize")
    """The largest answer to one fetch, in bytes, whatever the consumer asks for; one larger batch
    is still sent. 55 MiB is Kafka's own limit."""

    fetch_sessions_max: int = setting(1_000, Number(0, 1_000_000), key="maxFetchSessions")
    """How many incremental fetch sessions are remembered; consumers beyond that send their whole
    list of partitions with each fetch. 1,000 is Kafka's own limit; 0 has none."""

    request_timeout_ms: int = setting(60 * SECOND_MS, _TIMEOUT, key="requestTimeout")
    """How long a request that brings no time limit of its own may take until its answer. A minute
    is twice the time after which Kafka's clients give up by default, so that the client is the one
    who decides."""


@dataclass(frozen=True, kw_only=True)
class Topics:
    """How topics come into being."""

    auto_create: bool = setting(True, Flag(), variables=("KAFSCALE_AUTO_CREATE_TOPICS",))
    """Whether a topic is created when a client first names it and the client allows it. True, as in
    Kafka, so that a first try needs no preparation."""

    auto_create_partitions: int = setting(
        1, Number(1, 10_000), variables=("KAFSCALE_AUTO_CREATE_PARTITIONS",)
    )
    """How many partitions such a topic gets. 1, as in Kafka: it keeps all records in one order."""


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


@dataclass(frozen=True, kw_only=True)
class Logging:
    """What is written to the log."""

    level: str = setting(
        "info", Choice(("debug", "info", "warn", "error")), variables=("KAFSCALE_LOG_LEVEL",)
    )
    """The least important events that are still written. `info` tells what a broker does, not what
    each request does."""

    format: str = setting("json", Choice(("json", "text")))
    """One JSON object a line, for programs, or text for people. `json`, because a broker's log is
    mostly collected and searched."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """The Kubernetes operator."""

    namespaces: tuple[str, ...] = setting((), Names(Text("the name of a namespace", _DNS_LABEL)))
    """The namespaces whose clusters and topics it looks after. Empty, the default, is all of
    them."""

    namespace: str = setting("kafscale", Text("the name of a namespace", _DNS_LABEL))
    """The namespace that the operator itself is in; the Lease by which one of several leads is
    there. `kafscale` is where the chart puts it."""

    etcd_endpoints: tuple[str, ...] = setting((), Names(ENDPOINT))
    """The etcd that the operator gives to the clusters it builds. Empty, the default, lets the
    operator run an etcd of its own for them."""

    broker_image: str = setting("kafscale-broker:latest", _IMAGE)
    """The image of brokers whose cluster names none. The default is what `make docker` builds; the
    chart sets the one of its own version."""

    operator_image: str = setting("kafscale-operator:latest", _IMAGE)
    """The image that restores snapshots before a managed etcd starts: this operator's own.
    The default is what `make docker` builds."""

    etcd_image: str = setting("etcd:v3.6.16", _IMAGE)
    """The image of managed etcds whose cluster names none. The default is the newest that this
    version was tried with; name your registry before it where that is needed."""

    image_pull_secrets: tuple[str, ...] = setting((), Names(Text("the name of a Secret", r"\S+")))
    """The Secrets that those images are pulled with; they have to be in the namespaces of the
    clusters. Empty, the default, is for a registry that asks for none."""

    cluster_domain: str = setting("cluster.local", Text("a domain", r"[0-9A-Za-z.-]+"))
    """What names of Services end with in this Kubernetes. `cluster.local` is the default of
    Kubernetes itself."""

    resync_sec: int = setting(30, Duration(1, 3600, unit="s"))
    """How long the operator looks away at the most from a cluster of which it hears nothing. In
    seconds; 30 are gentle to the API server."""

    lease_duration_sec: int = setting(15, Duration(3, 600, unit="s"))
    """How long the others wait for a leader that is silent. In seconds; 15, as for Kubernetes' own
    controllers."""

    host: str = setting("0.0.0.0", _HOST)  # noqa: S104 - inside a pod the outside decides.
    """The address on which the operator serves metrics, health checks and its control plane.
    Every address by default, because Prometheus, the kubelet and brokers call from outside."""

    metrics_port: int = setting(9093, _PORT)
    """The port of its metrics and health checks; 0 takes any free one. 9093 by default, as at
    brokers."""

    control_port: int = setting(9094, _PORT)
    """The port of its control plane, which brokers send samples to and watch assignments at; 0
    takes any free one. 9094 is the next one by default."""

    control_address: str = setting("", ADDRESS)
    """Where brokers reach that port: the name of a Service in front of the operator. Empty, the
    default, has brokers leave the operator alone."""


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

    control_tls: bool = setting(False, Flag())
    """Whether the control plane is asked over TLS, with the files of `client.tls`. False, as
    brokers serve it by default."""

    control_servers: tuple[str, ...] = setting(
        ("localhost:9093",), _SERVERS, variables=("KAFSCALE_CONTROL_SERVERS",)
    )
    """The brokers to ask first on the control plane, as `kafscale cluster` does; one that answers
    is enough, and knows the others. By default the one on this machine, at its port for metrics."""
