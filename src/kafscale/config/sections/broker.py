"""Settings of one broker: id, listeners, directories, timeouts and automatic topic creation."""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.sections.security import PROTOCOLS
from kafscale.config.types import (
    HOST,
    HOST_OR_EMPTY,
    PORT,
    Boolean,
    BrokerId,
    Choice,
    Duration,
    Integer,
    OptionalInteger,
    StringList,
    Text,
)
from kafscale.text.units import MINUTE_MS, SECOND_MS

_LISTENER = r"[A-Za-z0-9_-]+://(\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z._-]*):PORT"


@dataclass(frozen=True, kw_only=True)
class Broker:
    """The broker: its id, its listeners and its directories."""

    id: int | None = setting(None, BrokerId())
    """The broker id: `2`, or `broker-2`. Empty takes the number at the end of the host name, as in
    the pods of a StatefulSet. A broker with etcd whose host name has none gets an id above 1000,
    which belongs to its host name and port from then on. Empty is the default, so that all brokers
    of a cluster can share one file."""

    rack: str = setting("", Text(optional=True))
    """The rack or availability zone of the broker. Partitions are balanced over zones as well as
    over brokers. Empty by default: no rack."""

    lease_ttl_ms: int = setting(10 * SECOND_MS, Duration(SECOND_MS, 10 * MINUTE_MS))
    """How long a broker may be unresponsive before others take over its partitions. In
    milliseconds. 10 seconds tolerate a short outage of etcd or of the network, and limit how long
    the partitions of a failed broker are unavailable."""

    host: str = setting("", HOST_OR_EMPTY)
    """The address of the listener for Kafka clients. Empty, the default, depends: brokers with etcd
    listen on all addresses (`0.0.0.0`), because clients and other brokers are elsewhere; an
    embedded broker listens on `127.0.0.1` only, because it requires no login unless it is
    configured. Set `0.0.0.0` to open it to the network; the images do."""

    port: int = setting(9092, PORT)
    """The port of the listener for Kafka clients; 0 takes any free port. 9092 is Kafka's usual
    port."""

    advertised_host: str = setting(
        "", Text("a host name or an address", r"[0-9A-Za-z._:%-]+", optional=True)
    )
    """The host name that clients use to connect to this broker. Empty, the default, advertises the
    address that the client connected to, which is right without a proxy in between."""

    advertised_port: int | None = setting(None, OptionalInteger(Integer(1, 65535)))
    """The port that clients use to connect to this broker. Empty, the default, advertises the port
    that the client connected to."""

    security_protocol: str = setting("PLAINTEXT", Choice(PROTOCOLS))
    """The security protocol of that listener: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. PLAINTEXT
    by default, because a new installation has neither certificates nor users."""

    listeners: tuple[str, ...] = setting(
        (), StringList(Text("of the form NAME://host:port", _LISTENER.replace("PORT", r"\d{1,5}")))
    )
    """Several named listeners for clients, instead of `host` and `port`:
    `INTERNAL://:9092,EXTERNAL://:9094`. Without a host a listener binds to all addresses; port 0
    takes any free port. Empty by default: one listener."""

    advertised_listeners: tuple[str, ...] = setting(
        (), StringList(Text("of the form NAME://host:port", _LISTENER.replace("PORT", r"\d{1,5}")))
    )
    """The addresses that clients use for those listeners: `EXTERNAL://broker-0.example.com:9094`. A
    client gets the addresses of all brokers for the listener that it connected to. A listener
    without an entry behaves as with an empty `advertisedHost`."""

    listener_security_protocol_map: tuple[str, ...] = setting(
        (),
        StringList(Text("of the form NAME:PROTOCOL", rf"[A-Za-z0-9_-]+:({'|'.join(PROTOCOLS)})")),
    )
    """The security protocol of each listener: `INTERNAL:PLAINTEXT,EXTERNAL:SASL_SSL`. A listener
    that is named after a protocol needs no entry. Empty by default."""

    data_dir: str = setting("kafscale-data", Text("a directory"), variables=("KAFSCALE_DATA_DIR",))
    """The data directory of the embedded mode: objects and metadata of a broker without a bucket or
    without etcd. By default below the working directory, so that trying Kafscale needs no
    permissions and leaves little to clean up."""

    metrics_host: str = setting("", HOST_OR_EMPTY)
    """The address of the HTTP server for metrics and health checks. Empty, the default, depends as
    for `broker.host`: Prometheus and the kubelet connect from other machines."""

    metrics_port: int = setting(9093, PORT)
    """The port of the HTTP server for metrics and health checks; 0 takes any free port. 9093 is the
    port after Kafka's."""

    control_host: str = setting("127.0.0.1", HOST)
    """The address of the control plane, with which `kafscale cluster`, the console, Spark jobs and
    the operator drain, flush and move partitions. `127.0.0.1`, because without `control.tls` it
    requires no login: other addresses need `control.tls` if clients have to authenticate."""

    control_port: int = setting(9095, PORT)
    """The port of the control plane; 0 takes any free port. 9095 is next to the other ports; 9094
    is often a second listener for clients."""

    drain_timeout_sec: int = setting(20, Duration(0, 3600, unit="s"))
    """How long a stopping broker transfers its partitions to other brokers before it exits. In
    seconds. 20 fit into the 30 that Kubernetes gives a pod to terminate."""

    allow_admin_apis: bool = setting(True, Boolean(), variables=("KAFSCALE_ALLOW_ADMIN_APIS",))
    """Whether clients may create, alter and delete topics. True by default, because Kafka's tools
    need it; false leaves this to the operator."""

    startup_timeout_sec: int = setting(
        30, Duration(1, 3600, unit="s"), variables=("KAFSCALE_STARTUP_TIMEOUT_SEC",)
    )
    """How long a starting broker waits for object storage and etcd before it exits with an error.
    In seconds. 30 tolerate a restart of etcd, and still reveal a wrong address soon."""


@dataclass(frozen=True, kw_only=True)
class Topics:
    """Automatic creation of topics."""

    auto_create: bool = setting(True, Boolean(), variables=("KAFSCALE_AUTO_CREATE_TOPICS",))
    """Whether a topic is created when a client first uses it, if the client allows it. True, as in
    Kafka, so that a first test needs no preparation."""

    auto_create_partitions: int = setting(
        1, Integer(1, 10_000), variables=("KAFSCALE_AUTO_CREATE_PARTITIONS",)
    )
    """The number of partitions of such a topic. 1, as in Kafka: all records stay in one order."""
