"""KafscaleCluster: the desired brokers, bucket and etcd.

Descriptions are what `kubectl explain` shows. Every field has a test that shows its effect.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from kafscale.operator.spec.base import (
    BrokerCount,
    Count,
    Host,
    Labels,
    Manifests,
    ObjectName,
    OptionalBucketName,
    OptionalObjectName,
    Region,
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
        text("The number of brokers; with autoscaling, the initial and minimum number."),
    ] = 3
    resources: Resources = field(default_factory=Resources)
    image: Annotated[
        str, text("The image of the brokers. Empty: that of the operator's settings.")
    ] = ""
    node_selector: Annotated[Labels, text("Labels of nodes that brokers may run on.")] = field(
        default_factory=dict
    )
    tolerations: Annotated[Manifests, text("Node taints that brokers tolerate.")] = field(
        default_factory=list
    )
    priority_class_name: Annotated[
        OptionalObjectName, text("The priority class of the pods. Empty: none.")
    ] = ""
    pod_annotations: Annotated[Labels, text("Additional annotations of the pods.")] = field(
        default_factory=dict
    )
    service_account_annotations: Annotated[
        Labels,
        text("Annotations of the brokers' ServiceAccount, such as a workload identity role."),
    ] = field(default_factory=dict)
    secrets: Annotated[
        list[SecretMount], text("Secrets mounted as files: listener certificates, users, tokens.")
    ] = field(default_factory=list)
    env_secrets: Annotated[
        list[ObjectName],
        text(
            "Secrets whose entries become environment variables. When one of them changes, brokers"
            " are drained and restarted one at a time."
        ),
    ] = field(default_factory=list)
    termination_grace_period_seconds: Annotated[
        int,
        Meta(
            ge=10,
            le=3600,
            description="How long a broker may take to drain and stop before it is killed.",
        ),
    ] = 60


class ServiceSpec(Spec, frozen=True, kw_only=True):
    """The Service that clients bootstrap from."""

    type: Annotated[
        Literal["ClusterIP", "NodePort", "LoadBalancer"], text("The type of the Service.")
    ] = "ClusterIP"
    annotations: Annotated[Labels, text("Annotations of the Service.")] = field(
        default_factory=dict
    )


class ManagedEtcdSpec(Spec, frozen=True, kw_only=True):
    """The etcd that the operator runs if no other one is configured."""

    replicas: Annotated[Literal[1, 3, 5], text("The number of members.")] = 3
    image: Annotated[str, text("The image of etcd. Empty: that of the operator's settings.")] = ""
    storage: Annotated[Size, text("The size of a member's volume.")] = "10Gi"
    storage_class_name: Annotated[
        str, text("The storage class of the volumes, preferably SSD. Empty: the default class.")
    ] = ""
    quota: Annotated[Size, text("The maximum size of the database.")] = "4Gi"
    compaction_retention: Annotated[
        str,
        Meta(
            pattern=r"^[0-9]+(s|m|h)$",
            description="How long old revisions of keys are kept, such as 5m.",
        ),
    ] = "5m"
    resources: Resources = field(
        default_factory=lambda: Resources(
            requests=ResourceMap(cpu="200m", memory="512Mi"),
            limits=ResourceMap(cpu="1", memory="2Gi"),
        )
    )
    defragment: Annotated[
        bool, text("Defragment members, one at a time, when half of a database is unused.")
    ] = True


class SnapshotsSpec(Spec, frozen=True, kw_only=True):
    """Backups of the metadata."""

    enabled: Annotated[bool, text("Take snapshots of etcd.")] = True
    bucket: Annotated[
        OptionalBucketName,
        text(
            "The bucket of the snapshots, preferably a dedicated one. Empty: that of the records."
        ),
    ] = ""
    region: Annotated[Region, text("The region of that bucket. Empty: that of the records.")] = ""
    endpoint: Annotated[
        str, text("The S3 endpoint of that bucket. Empty: that of the records.")
    ] = ""
    credentials_secret_ref: Annotated[
        OptionalObjectName,
        text("The Secret with keys for that bucket. Empty: that of the records."),
    ] = ""
    create_bucket: Annotated[bool, text("Create the bucket if it does not exist.")] = False
    prefix: Annotated[str, text("The prefix of the snapshots' keys.")] = "etcd-snapshots"
    interval_seconds: Annotated[
        int, Meta(ge=10, le=7 * 86400, description="The time between two snapshots.")
    ] = 3600
    retain: Annotated[
        int,
        Meta(ge=1, le=10_000, description="How many snapshots to keep; older ones are deleted."),
    ] = 168
    stale_after_seconds: Annotated[
        int,
        Meta(
            ge=20,
            le=30 * 86400,
            description="The age at which the newest snapshot is reported as stale.",
        ),
    ] = 7200


class EtcdSpec(Spec, frozen=True, kw_only=True):
    """The etcd: an external one, or one that the operator runs."""

    endpoints: Annotated[
        list[str],
        Meta(
            max_length=32,
            description="The members of an external etcd, as host:port. Empty: that of the"
            " operator's settings, or else one that the operator runs.",
        ),
    ] = field(default_factory=list)
    use_kube_etcd: Annotated[
        bool, text("Use the etcd of Kubernetes itself, if the operator allows it.")
    ] = False
    tls_secret_ref: Annotated[
        OptionalObjectName,
        text("The Secret with ca.crt, tls.crt and tls.key for an external etcd."),
    ] = ""
    credentials_secret_ref: Annotated[
        OptionalObjectName,
        text("The Secret with KAFSCALE_ETCD_USERNAME and KAFSCALE_ETCD_PASSWORD."),
    ] = ""
    managed: ManagedEtcdSpec = field(default_factory=ManagedEtcdSpec)
    snapshots: SnapshotsSpec = field(default_factory=SnapshotsSpec)
    restore_from: Annotated[
        str,
        text(
            "The key of a snapshot, or latest: what a new managed etcd is restored from. Ignored if"
            " it has data."
        ),
    ] = ""


class ConfigSpec(Spec, frozen=True, kw_only=True):
    """Settings of the brokers."""

    segment_bytes: Annotated[int, Meta(ge=1, description="The size of segments, in bytes.")] = (
        104_857_600
    )
    flush_interval_ms: Annotated[
        int,
        Meta(
            ge=1, description="The maximum time that records are buffered before they are uploaded."
        ),
    ] = 500
    cache_size: Annotated[Size, text("The size of a broker's segment cache.")] = "2Gi"
    settings: Annotated[
        dict[str, Any],
        text(
            "Further settings, as in broker.yaml and docs/configuration.md: listeners, SASL,"
            " quotas, groups. They override the fields above."
        ),
    ] = field(default_factory=dict)


class ScaleToZeroSpec(Spec, frozen=True, kw_only=True):
    """Stop all brokers while the cluster is idle."""

    enabled: Annotated[
        bool,
        text(
            "Drain and stop all brokers while no client is connected. The first client that"
            " connects to the Service wakes them."
        ),
    ] = False
    idle_seconds: Annotated[
        int, Meta(ge=10, description="How long no client must be connected before brokers stop.")
    ] = 1800


class TlsSpec(Spec, frozen=True, kw_only=True):
    """TLS for Kafka clients, with certificates that the operator issues and renews."""

    enabled: Annotated[
        bool,
        text(
            "Serve Kafka clients with TLS only. They trust the CA in ConfigMap NAME-listener-ca."
            " With config.settings.broker.listeners, the certificate is that of their listeners"
            " with SSL or SASL_SSL."
        ),
    ] = False
    hosts: Annotated[
        list[Host],
        text("Further host names of the brokers, such as those of advertised listeners."),
    ] = field(default_factory=list)


class AutoscalingSpec(Spec, frozen=True, kw_only=True):
    """The HorizontalPodAutoscaler of the brokers."""

    enabled: Annotated[bool, text("Add and remove brokers by load.")] = True
    min_replicas: Annotated[
        BrokerCount | None, text("The minimum number of brokers. Unset: brokers.replicas.")
    ] = None
    max_replicas: Annotated[BrokerCount, text("The maximum number of brokers.")] = 20
    target_cpu_utilization: Annotated[
        Count, text("The target CPU usage of brokers, in percent of their request.")
    ] = 70
    target_memory_utilization: Annotated[
        Count, text("The target memory usage of brokers, in percent of their request.")
    ] = 80
    target_produce_requests_per_second: Annotated[
        Count, text("The target number of produce requests per second and broker.")
    ] = 1000
    scale_to_zero: ScaleToZeroSpec = field(default_factory=ScaleToZeroSpec)


class NetworkPolicySpec(Spec, frozen=True, kw_only=True):
    """Which pods may connect to the cluster."""

    enabled: Annotated[bool, text("Create NetworkPolicies.")] = True
    monitoring_namespace_labels: Annotated[
        Labels,
        text(
            "Labels of the namespaces whose pods may read metrics, which show the names of topics"
            " and groups. Empty allows all namespaces."
        ),
    ] = field(default_factory=lambda: {"kubernetes.io/metadata.name": "monitoring"})


class MonitoringSpec(Spec, frozen=True, kw_only=True):
    """Monitoring with Prometheus."""

    service_monitor: Annotated[
        bool, text("Create a ServiceMonitor, if Kubernetes has that kind.")
    ] = True
    labels: Annotated[
        Labels, text("Labels of the ServiceMonitor, by which Prometheus selects it.")
    ] = field(default_factory=dict)
    interval_seconds: Annotated[int, Meta(ge=1, le=3600, description="The scrape interval.")] = 30


class ClusterSpec(Spec, frozen=True, kw_only=True):
    """The desired state of a cluster."""

    brokers: BrokersSpec
    s3: S3Spec
    etcd: EtcdSpec = field(default_factory=EtcdSpec)
    config: ConfigSpec = field(default_factory=ConfigSpec)
    tls: TlsSpec = field(default_factory=TlsSpec)
    service: ServiceSpec = field(default_factory=ServiceSpec)
    autoscaling: AutoscalingSpec = field(default_factory=AutoscalingSpec)
    network_policy: NetworkPolicySpec = field(default_factory=NetworkPolicySpec)
    monitoring: MonitoringSpec = field(default_factory=MonitoringSpec)

    @property
    def replicas_min(self) -> int:
        """The initial number of brokers, and the minimum unless scaled to zero."""
        autoscaled = self.autoscaling.min_replicas if self.autoscaling.enabled else None
        return autoscaled or self.brokers.replicas

    @property
    def snapshots_s3(self) -> S3Spec:
        """The bucket of the snapshots; unset fields are those of the records' bucket."""
        snapshots, s3 = self.etcd.snapshots, self.s3
        return msgspec.structs.replace(
            s3,
            bucket=snapshots.bucket or s3.bucket,
            region=snapshots.region or s3.region,
            endpoint=snapshots.endpoint or s3.endpoint,
            credentials_secret_ref=snapshots.credentials_secret_ref or s3.secret,
        )


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A KafscaleCluster as the API server returns it."""

    name: str
    namespace: str
    uid: str
    generation: int
    spec: ClusterSpec
    annotations: dict[str, str] = {}
    status: dict[str, Any] = {}

    @property
    def object_namespace(self) -> str:
        """The prefix of its objects in the bucket."""
        return self.spec.s3.namespace or f"{self.namespace}.{self.name}"


def read_cluster(body: dict[str, Any]) -> Cluster:
    """Parse a resource from the API server; raises `msgspec.ValidationError`."""
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
