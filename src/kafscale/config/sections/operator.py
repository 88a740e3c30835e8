"""Settings of the Kubernetes operator."""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.sections.etcd import ENDPOINT
from kafscale.config.sections.security import ADDRESS
from kafscale.config.types import Duration, Integer, StringList, Text

_HOST = Text("a host name or an address", r"[0-9A-Za-z._:%-]+")
_PORT = Integer(0, 65535)
_DNS_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_IMAGE = Text("the name of an image, with its tag or digest", r"\S+")


@dataclass(frozen=True, kw_only=True)
class Operator:
    """The Kubernetes operator."""

    namespaces: tuple[str, ...] = setting(
        (), StringList(Text("the name of a namespace", _DNS_LABEL))
    )
    """The namespaces whose clusters and topics it looks after. Empty, the default, is all of
    them."""

    namespace: str = setting("kafscale", Text("the name of a namespace", _DNS_LABEL))
    """The namespace that the operator itself is in; the Lease by which one of several leads is
    there. `kafscale` is where the chart puts it."""

    etcd_endpoints: tuple[str, ...] = setting((), StringList(ENDPOINT))
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

    image_pull_secrets: tuple[str, ...] = setting(
        (), StringList(Text("the name of a Secret", r"\S+"))
    )
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
