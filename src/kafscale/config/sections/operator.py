"""Settings of the Kubernetes operator."""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.sections.etcd import ENDPOINT
from kafscale.config.sections.security import ADDRESS
from kafscale.config.types import HOST, PORT, Boolean, Duration, StringList, Text

_DNS_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_IMAGE = Text("the name of an image, with its tag or digest", r"\S+")
_ALL = "*"
_NAMESPACES = r"[a-z0-9*]([a-z0-9*-]{0,61}[a-z0-9*])?"


@dataclass(frozen=True, kw_only=True)
class Operator:
    """The Kubernetes operator."""

    namespaces: tuple[str, ...] = setting(
        (), StringList(Text("the name of a namespace, or `*`", rf"{_DNS_LABEL}|\*"))
    )
    """The namespaces whose clusters and topics the operator reconciles, or `*` for all. Empty, the
    default, means the operator's own: in a namespace that it watches, users who may create clusters
    have it use Secrets and start pods there, so others have to be chosen."""

    namespace: str = setting("kafscale", Text("the name of a namespace", _DNS_LABEL))
    """The namespace of the operator itself, which contains the Lease for leader election.
    `kafscale` is the default of the chart."""

    etcd_endpoints: tuple[str, ...] = setting((), StringList(ENDPOINT))
    """An external etcd for the clusters. Empty, the default, makes the operator run a managed etcd
    for them."""

    allowed_buckets: tuple[str, ...] = setting(
        (),
        StringList(
            Text(
                "of the form NAMESPACE/BUCKET or NAMESPACE/BUCKET/PREFIX, where `*` is any text",
                rf"{_NAMESPACES}/[a-z0-9.*-]+(/[A-Za-z0-9._*-]+)?",
            )
        ),
    )
    """The buckets that the operator uses with its own identity (a role, or keys in its
    environment), for clusters of this namespace that name no Secret with keys. Without a prefix
    only the prefixes `NAMESPACE.*`, which clusters have by default (`s3.namespace`). Empty, the
    default, allows none, because users who may edit a namespace choose its buckets."""

    allowed_roles: tuple[str, ...] = setting(
        (),
        StringList(
            Text(
                "of the form NAMESPACE/ROLE-ARN, where `*` is any text",
                rf"{_NAMESPACES}/(arn:|\*)\S*",
            )
        ),
    )
    """The roles that the operator assumes with its own identity (`s3.roleArn`), or passes to S3 for
    replication (`s3.replicationRoleArn`), for clusters of this namespace. Empty, the default,
    allows none."""

    allowed_endpoints: tuple[str, ...] = setting(
        (),
        StringList(
            Text(
                "of the form NAMESPACE/HOST or NAMESPACE/HOST:PORT, where `*` is any text",
                rf"{_NAMESPACES}/[0-9A-Za-z.:*\[\]_-]+",
            )
        ),
    )
    """The servers that clusters of this namespace may name although they are at loopback or
    link-local addresses or are metadata services, and the S3 servers that the operator may use with
    its own identity. Empty, the default, allows other addresses only, and no S3 server but AWS with
    the operator's identity."""

    allow_kube_etcd: bool = setting(False, Boolean())
    """Whether clusters may use the etcd of Kubernetes itself (`etcd.useKubeEtcd`). False, because
    that etcd has all Secrets of Kubernetes, and the operator takes snapshots of a cluster's etcd
    into the bucket that the cluster names."""

    broker_image: str = setting("kafscale-broker:latest", _IMAGE)
    """The image of brokers, unless the cluster resource sets one. The default is what `make docker`
    builds; the chart sets the image of its version."""

    operator_image: str = setting("kafscale-operator:latest", _IMAGE)
    """The image that restores snapshots before a managed etcd starts: the operator's own image. The
    default is what `make docker` builds."""

    etcd_image: str = setting("etcd:v3.6.16", _IMAGE)
    """The image of managed etcds, unless the cluster resource sets one. The default is the newest
    version that was tested; prefix it with your registry if necessary."""

    image_pull_secrets: tuple[str, ...] = setting(
        (), StringList(Text("the name of a Secret", r"\S+"))
    )
    """The Secrets for pulling these images; they must exist in the namespaces of the clusters.
    Empty by default, for registries without authentication."""

    cluster_domain: str = setting("cluster.local", Text("a domain", r"[0-9A-Za-z.-]+"))
    """The DNS domain of the Kubernetes cluster. `cluster.local` is the default of Kubernetes."""

    resync_sec: int = setting(30, Duration(1, 3600, unit="s"))
    """The maximum time between two reconciliations of a cluster without events. In seconds. 30
    cause little load on the API server."""

    lease_duration_sec: int = setting(15, Duration(3, 600, unit="s"))
    """How long the other replicas wait for a leader that does not renew its Lease. In seconds. 15,
    as for Kubernetes' own controllers."""

    host: str = setting("0.0.0.0", HOST)  # noqa: S104 - inside a pod the outside decides.
    """The address of the operator's metrics, health checks and control plane. By default all
    addresses, because Prometheus, the kubelet and brokers connect from outside."""

    metrics_port: int = setting(9093, PORT)
    """The port of metrics and health checks; 0 takes any free port. 9093, as for brokers."""

    control_port: int = setting(9094, PORT)
    """The port of the operator's control plane, which brokers send metrics to and watch assignments
    at; 0 takes any free port. 9094 is the port after that of the metrics."""

    control_address: str = setting("", ADDRESS)
    """The address of that port for brokers: the name of a Service in front of the operator. Empty
    by default: brokers do not connect to the operator."""

    @property
    def watched_namespaces(self) -> tuple[str, ...]:
        """The namespaces that the operator reconciles; empty means all."""
        if _ALL in self.namespaces:
            return ()
        return self.namespaces or (self.namespace,)
