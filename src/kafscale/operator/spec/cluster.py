"""KafscaleCluster: brokers, their bucket and their etcd, as they are wanted.

Each description is what `kubectl explain` says. Every field changes something, and a test per field
shows what.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from kafscale.operator.spec.base import (
    BrokerCount,
    Count,
    Labels,
    Manifests,
    ResourceMap,
    Resources,
    SecretMount,
    Size,
    Spec,
    text,
)
from kafscale.operator.spec.s3 import S3Spec


class BrokersSpec(Spec, frozen=True, kw_only=True):
    """The brokers."""

    replicas: Annotated[
        BrokerCount,
        text(
            "How many brokers there are; with autoscaling, how many at least, and what is started"
            " with."
        ),
    ] = 3
    resources: Resources = field(default_factory=Resources)
    image: Annotated[
        str, text("The image of the brokers. Empty is the one that goes with the operator.")
    ] = ""
    node_selector: Annotated[Labels, text("Labels of the nodes that brokers may run on.")] = field(
        default_factory=dict
    )
    tolerations: Annotated[Manifests, text("Taints of nodes that brokers tolerate.")] = field(
        default_factory=list
    )
    priority_class_name: Annotated[str, text("The priority of the pods. Empty has none.")] = ""
    pod_annotations: Annotated[Labels, text("Further annotations of the pods.")] = field(
        default_factory=dict
    )
    service_account_annotations: Annotated[
        Labels, text("Annotations of the brokers' ServiceAccount: the role of workload identity.")
    ] = field(default_factory=dict)
    secrets: Annotated[
        list[SecretMount],
        text("Secrets that brokers find as files: certificates of listeners, users, tokens."),
    ] = field(default_factory=list)
    env_secrets: Annotated[
        list[str],
        text(
            "Secrets whose entries brokers find as environment variables; brokers are restarted,"
            " one after the other and drained first, when one of them changes."
        ),
    ] = field(default_factory=list)
    termination_grace_period_seconds: Annotated[
        int,
        Meta(
            ge=10,
            le=3600,
            description="How long a broker may take to hand over what it owns before it is killed.",
        ),
    ] = 60


class ServiceSpec(Spec, frozen=True, kw_only=True):
    """The Service that clients begin with."""

    type: Annotated[
        Literal["ClusterIP", "NodePort", "LoadBalancer"], text("The type of the Service.")
    ] = "ClusterIP"
    annotations: Annotated[Labels, text("Annotations of the Service.")] = field(
        default_factory=dict
    )


class ManagedEtcdSpec(Spec, frozen=True, kw_only=True):
    """The etcd that the operator runs where none is given."""

    replicas: Annotated[Literal[1, 3, 5], text("How many members there are.")] = 3
    image: Annotated[
        str, text("The image of etcd. Empty is the one that the operator was set up with.")
    ] = ""
    storage: Annotated[Size, text("The size of a member's volume.")] = "10Gi"
    storage_class_name: Annotated[
        str, text("The class of the volumes; SSDs, if it can be. Empty is the default class.")
    ] = ""
    quota: Annotated[Size, text("How large the database may grow.")] = "4Gi"
    compaction_retention: Annotated[
        str,
        Meta(
            pattern=r"^[0-9]+(s|m|h)$",
            description="How long the history of keys is kept, such as 5m.",
        ),
    ] = "5m"
    resources: Resources = field(
        default_factory=lambda: Resources(
            requests=ResourceMap(cpu="200m", memory="512Mi"),
            limits=ResourceMap(cpu="1", memory="2Gi"),
        )
    )
    defragment: Annotated[
        bool,
        text("Whether members are defragmented, one at a time, when half of a database is air."),
    ] = True


class SnapshotsSpec(Spec, frozen=True, kw_only=True):
    """The backups of the metadata."""

    enabled: Annotated[bool, text("Whether snapshots of etcd are taken.")] = True
    bucket: Annotated[
        str,
        text("The bucket of the snapshots, best a dedicated one. Empty is that of the records."),
    ] = ""
    region: Annotated[str, text("The region of that bucket. Empty is that of the records.")] = ""
    endpoint: Annotated[
        str, text("The S3 server of that bucket. Empty is that of the records.")
    ] = ""
    credentials_secret_ref: Annotated[
        str, text("The Secret with keys for that bucket. Empty is that of the records.")
    ] = ""
    create_bucket: Annotated[
        bool, text("Whether the operator makes the bucket if there is none.")
    ] = False
    prefix: Annotated[str, text("What keys of snapshots begin with.")] = "etcd-snapshots"
    interval_seconds: Annotated[
        int, Meta(ge=10, le=7 * 86400, description="How often a snapshot is taken.")
    ] = 3600
    retain: Annotated[
        int,
        Meta(ge=1, le=10_000, description="How many snapshots are kept; older ones are deleted."),
    ] = 168
    stale_after_seconds: Annotated[
        int,
        Meta(
            ge=20, le=30 * 86400, description="How old the newest may be until that is a problem."
        ),
    ] = 7200


class EtcdSpec(Spec, frozen=True, kw_only=True):
    """The etcd: one that is given, or one that the operator runs."""

    endpoints: Annotated[
        list[str],
        Meta(
            max_length=32,
            description="The members of an etcd that exists, as host:port. Empty is the one that"
            " the operator was set up with, or else one that it runs.",
        ),
    ] = field(default_factory=list)
    use_kube_etcd: Annotated[
        bool, text("Whether to use the etcd of Kubernetes itself, where its pods can be seen.")
    ] = False
    tls_secret_ref: Annotated[
        str, text("The Secret with ca.crt, tls.crt and tls.key for an etcd that is given.")
    ] = ""
    credentials_secret_ref: Annotated[
        str, text("The Secret with KAFSCALE_ETCD_USERNAME and KAFSCALE_ETCD_PASSWORD.")
    ] = ""
    managed: ManagedEtcdSpec = field(default_factory=ManagedEtcdSpec)
    snapshots: SnapshotsSpec = field(default_factory=SnapshotsSpec)
    restore_from: Annotated[
        str,
        text(
            "The key of a snapshot, or latest: what a new managed etcd begins with. It does nothing"
            " to one that has data."
        ),
    ] = ""


class ConfigSpec(Spec, frozen=True, kw_only=True):
    """Settings of the brokers."""

    segment_bytes: Annotated[
        int, Meta(ge=1, description="The size at which segments are complete, in bytes.")
    ] = 104_857_600
    flush_interval_ms: Annotated[
        int, Meta(ge=1, description="How long an acknowledgement may wait for company.")
    ] = 500
    cache_size: Annotated[Size, text("How much a broker caches of segments.")] = "2Gi"
    settings: Annotated[
        dict[str, Any],
        text(
            "Further settings, as in broker.yaml and the reference of settings: listeners, SASL,"
            " quotas, groups. They win over the fields above."
        ),
    ] = field(default_factory=dict)


class ScaleToZeroSpec(Spec, frozen=True, kw_only=True):
    """Sleep while nobody comes."""

    enabled: Annotated[
        bool,
        text(
            "Whether all brokers are drained and stopped while no client is connected. The first"
            " one that connects to the Service wakes them."
        ),
    ] = False
    idle_seconds: Annotated[
        int, Meta(ge=10, description="How long nobody has to be connected before that.")
    ] = 1800


class AutoscalingSpec(Spec, frozen=True, kw_only=True):
    """The HorizontalPodAutoscaler of the brokers."""

    enabled: Annotated[bool, text("Whether brokers are added and removed by load.")] = True
    min_replicas: Annotated[
        BrokerCount | None, text("How few brokers there may be. Unset is brokers.replicas.")
    ] = None
    max_replicas: Annotated[BrokerCount, text("How many brokers there may be.")] = 20
    target_cpu_utilization: Annotated[
        Count, text("The CPU that brokers should use, in percent of what they request.")
    ] = 70
    target_memory_utilization: Annotated[
        Count, text("The memory that brokers should use, in percent of what they request.")
    ] = 80
    target_produce_requests_per_second: Annotated[
        Count, text("How many produce requests a broker should serve in a second.")
    ] = 1000
    scale_to_zero: ScaleToZeroSpec = field(default_factory=ScaleToZeroSpec)


class NetworkPolicySpec(Spec, frozen=True, kw_only=True):
    """Who may connect to what."""

    enabled: Annotated[bool, text("Whether there are NetworkPolicies.")] = True
    monitoring_namespace_labels: Annotated[
        Labels,
        text(
            "Labels of the namespaces whose pods may read metrics. Empty lets all namespaces, by"
            " the port that carries the control plane, too."
        ),
    ] = field(default_factory=lambda: {"kubernetes.io/metadata.name": "monitoring"})


class MonitoringSpec(Spec, frozen=True, kw_only=True):
    """Prometheus."""

    service_monitor: Annotated[
        bool, text("Whether there is a ServiceMonitor, where Kubernetes knows such a thing.")
    ] = True
    labels: Annotated[
        Labels, text("Labels of the ServiceMonitor, by which a Prometheus finds it.")
    ] = field(default_factory=dict)
    interval_seconds: Annotated[
        int, Meta(ge=1, le=3600, description="How often brokers are asked.")
    ] = 30


class ClusterSpec(Spec, frozen=True, kw_only=True):
    """What is wanted of a cluster."""

    brokers: BrokersSpec
    s3: S3Spec
    etcd: EtcdSpec = field(default_factory=EtcdSpec)
    config: ConfigSpec = field(default_factory=ConfigSpec)
    service: ServiceSpec = field(default_factory=ServiceSpec)
    autoscaling: AutoscalingSpec = field(default_factory=AutoscalingSpec)
    network_policy: NetworkPolicySpec = field(default_factory=NetworkPolicySpec)
    monitoring: MonitoringSpec = field(default_factory=MonitoringSpec)

    @property
    def replicas_min(self) -> int:
        """How many brokers there are to begin with, and never fewer but in sleep."""
        autoscaled = self.autoscaling.min_replicas if self.autoscaling.enabled else None
        return autoscaled or self.brokers.replicas

    @property
    def snapshots_s3(self) -> S3Spec:
        """The bucket of the snapshots: that of the records, where nothing else is said."""
        said, s3 = self.etcd.snapshots, self.s3
        return msgspec.structs.replace(
            s3,
            bucket=said.bucket or s3.bucket,
            region=said.region or s3.region,
            endpoint=said.endpoint or s3.endpoint,
            credentials_secret_ref=said.credentials_secret_ref or s3.secret,
        )


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A KafscaleCluster as Kubernetes has it."""

    name: str
    namespace: str
    uid: str
    generation: int
    spec: ClusterSpec
    annotations: dict[str, str] = {}
    status: dict[str, Any] = {}

    @property
    def object_namespace(self) -> str:
        """What its objects in the bucket begin with."""
        return self.spec.s3.namespace or f"{self.namespace}.{self.name}"


def read_cluster(body: dict[str, Any]) -> Cluster:
    """A resource from what the API server says; raises `msgspec.ValidationError`."""
    metadata = body["metadata"]
    return Cluster(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        spec=msgspec.convert(body["spec"], ClusterSpec),
        annotations=dict(metadata.get("annotations") or {}),
        status=dict(body.get("status") or {}),
    )
