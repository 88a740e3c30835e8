"""Settings of the broker: identity, listeners, directories."""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.sections.security import PROTOCOLS
from kafscale.config.types import (
    Boolean,
    Choice,
    Duration,
    Integer,
    OptionalInteger,
    StringList,
    Text,
)
from kafscale.text.units import MINUTE_MS, SECOND_MS

_HOST = Text("a host name or an address", r"[0-9A-Za-z._:%-]+")
_PORT = Integer(0, 65535)
_LISTENER = r"[A-Za-z0-9_-]+://(\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z._-]*):PORT"


@dataclass(frozen=True, kw_only=True)
class Broker:
    """Who this broker is and where it listens."""

    id: int | None = setting(None, OptionalInteger(Integer(0, 2**31 - 1)))
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

    advertised_port: int | None = setting(None, OptionalInteger(Integer(1, 65535)))
    """The port under which clients reach this broker. Empty, the default, tells each client the
    port at which it has come."""

    security_protocol: str = setting("PLAINTEXT", Choice(PROTOCOLS))
    """How clients are served on that port: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. PLAINTEXT,
    because a first try has neither certificates nor users."""

    listeners: tuple[str, ...] = setting(
        (), StringList(Text("of the form NAME://host:port", _LISTENER.replace("PORT", r"\d{1,5}")))
    )
    """Several listeners for clients, in place of `host` and `port`, each with a name:
    `INTERNAL://:9092,EXTERNAL://:9094`. Without a host every address is served; port 0 takes any
    free one. Empty, the default, has the one listener."""

    advertised_listeners: tuple[str, ...] = setting(
        (), StringList(Text("of the form NAME://host:port", _LISTENER.replace("PORT", r"\d{1,5}")))
    )
    """The names under which clients reach those listeners: `EXTERNAL://broker-0.example.com:9094`.
    A client is told of all brokers by the addresses of the listener at which it has come. For
    listeners that are not in here, the same holds as for an empty `advertisedHost`."""

    listener_security_protocol_map: tuple[str, ...] = setting(
        (),
        StringList(Text("of the form NAME:PROTOCOL", rf"[A-Za-z0-9_-]+:({'|'.join(PROTOCOLS)})")),
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

    control_port: int | None = setting(None, OptionalInteger(_PORT))
    """The port of a listener for the control plane alone; 0 takes any free one. Empty, the default,
    serves it on the port of the metrics only, so that there is one port less to open."""

    drain_timeout_sec: int = setting(20, Duration(0, 3600, unit="s"))
    """How long a stopping broker hands over what it owns to others, before it leaves the rest to
    them. In seconds; 20 fit into the 30 that Kubernetes gives a pod."""

    allow_admin_apis: bool = setting(True, Boolean(), variables=("KAFSCALE_ALLOW_ADMIN_APIS",))
    """Whether clients may create, change and delete topics. True, because Kafka's own tools expect
    it; false leaves that to the operator."""

    startup_timeout_sec: int = setting(
        30, Duration(1, 3600, unit="s"), variables=("KAFSCALE_STARTUP_TIMEOUT_SEC",)
    )
    """How long a starting broker waits for its stores before it gives up and exits. In seconds; 30
    outlasts a restart of etcd, and a wrong address still shows soon."""
