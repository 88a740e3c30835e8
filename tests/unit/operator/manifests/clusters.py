"""Clusters for tests of manifests: the documented sample, a minimal one, one with all fields."""

from typing import Any

import yaml

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests.brokers import (
    config_map,
    network_policy,
    scaling,
    service_account,
    services,
    stateful_set,
)
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.spec.cluster import Cluster, read_cluster

PLATFORM = Platform(
    broker_image="kafscale-broker:1.2.3",
    namespace="kafscale-system",
    control_address="kafscale-operator.kafscale-system.svc:9094",
)

PRODUCTION = """
brokers:
  replicas: 3
  resources:
    requests: {cpu: "1", memory: 2Gi}
    limits: {cpu: "4", memory: 8Gi}
s3:
  bucket: kafscale-production-data
  region: eu-west-1
  credentialsSecret: kafscale-s3-credentials
etcd:
  endpoints:
    - kafscale-etcd-0.kafscale-etcd:2379
    - kafscale-etcd-1.kafscale-etcd:2379
    - kafscale-etcd-2.kafscale-etcd:2379
config: {segmentBytes: 104857600, flushIntervalMs: 500, cacheSize: 4Gi}
"""
TRY_OUT = """
brokers: {replicas: 1}
s3: {bucket: tryout, endpoint: "http://minio:9000", credentialsSecretRef: minio}
autoscaling: {enabled: false}
networkPolicy: {enabled: false}
monitoring: {serviceMonitor: false}
"""
EVERYTHING = """
brokers:
  replicas: 5
  resources:
    requests: {cpu: 1500m, memory: 3Gi}
    limits: {cpu: "3", memory: 6Gi}
  image: example/broker:9
  nodeSelector: {disk: none}
  tolerations: [{key: dedicated, operator: Equal, value: kafka, effect: NoSchedule}]
  priorityClassName: streams
  podAnnotations: {team: data}
  serviceAccountAnnotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/brokers"}
  secrets: [{name: listener-tls, mountPath: /etc/kafscale/tls}]
  envSecrets: [users]
  terminationGracePeriodSeconds: 120
s3:
  bucket: kafscale-prod-eu-west-1
  region: eu-west-1
  endpoint: https://s3.example.com
  storageClass: INTELLIGENT_TIERING
  pathStyle: false
  namespace: streams
  kmsKeyArn: arn:aws:kms:eu-west-1:1:key/k
  credentialsSecretRef: keys
  roleArn: arn:aws:iam::1:role/bucket
  createBucket: true
  environment: prod
  manageLifecycle: true
  replication: true
  archive: {enabled: true, afterDays: 90, storageClass: DEEP_ARCHIVE}
  replicationBucket: arn:aws:s3:::kafscale-prod-us-east-1
  replicationRoleArn: arn:aws:iam::1:role/replication
etcd:
  endpoints: [https://etcd-0.etcd:2379]
  tlsSecretRef: etcd-tls
  credentialsSecretRef: etcd-user
config:
  segmentBytes: 52428800
  flushIntervalMs: 250
  cacheSize: 3Gi
  settings:
    broker:
      listeners: ["INTERNAL://:9092", "EXTERNAL://:9094"]
      advertisedListeners: ["EXTERNAL://$(POD_NAME).kafka.example.com:9094"]
      listenerSecurityProtocolMap: ["INTERNAL:SASL_PLAINTEXT", "EXTERNAL:SASL_SSL"]
    tls: {certFile: /etc/kafscale/tls/tls.crt, keyFile: /etc/kafscale/tls/tls.key}
    sasl: {enabledMechanisms: [SCRAM-SHA-512]}
    storage: {flushIntervalMs: 100}
service: {type: LoadBalancer, annotations: {example.com/scheme: internal}}
autoscaling:
  enabled: true
  minReplicas: 4
  maxReplicas: 40
  targetCpuUtilization: 60
  targetMemoryUtilization: 75
  targetProduceRequestsPerSecond: 2000
networkPolicy: {enabled: true, monitoringNamespaceLabels: {purpose: metrics}}
monitoring: {serviceMonitor: true, labels: {release: prometheus}, intervalSeconds: 15}
"""

CASES: dict[str, tuple[str, EtcdAccess]] = {
    "production": (
        PRODUCTION,
        EtcdAccess(endpoints=tuple(f"kafscale-etcd-{i}.kafscale-etcd:2379" for i in range(3))),
    ),
    "try_out": (
        TRY_OUT,
        EtcdAccess(
            endpoints=("https://tryout-etcd:2379",),
            tls_secret="tryout-etcd-client-tls",  # noqa: S106 - its name.
            is_managed=True,
        ),
    ),
    "everything": (
        EVERYTHING,
        EtcdAccess(
            endpoints=("https://etcd-0.etcd:2379",),
            tls_secret="etcd-tls",  # noqa: S106 - its name.
            credentials_secret="etcd-user",  # noqa: S106 - its name.
        ),
    ),
}
"""Specs and how their etcd is reached, by the names of their golden files."""


def cluster(spec: str | dict[str, Any], name: str = "production") -> Cluster:
    """A resource with a spec, which may be YAML."""
    metadata = {"name": name, "namespace": "kafscale", "uid": "d2c1", "generation": 1}
    tree = yaml.safe_load(spec) if isinstance(spec, str) else spec
    return read_cluster({"metadata": metadata, "spec": tree})


def case(name: str) -> tuple[Cluster, EtcdAccess]:
    spec, etcd = CASES[name]
    return cluster(spec, name.replace("_", "-")), etcd


def manifests(
    cluster: Cluster, etcd: EtcdAccess, platform: Platform = PLATFORM, checksum: str = "0123"
) -> list[Manifest]:
    """Everything that the operator applies for the brokers of a cluster, in that order."""
    objects = [
        service_account.service_account(cluster),
        service_account.role(cluster),
        service_account.binding(cluster),
        config_map.config_map(cluster, platform, etcd),
        services.headless(cluster),
        services.client(cluster),
        stateful_set.stateful_set(cluster, platform, etcd, secrets_checksum=checksum),
        scaling.autoscaler(cluster),
        scaling.pod_disruption_budget(cluster),
        network_policy.policy(cluster, platform),
        services.service_monitor(cluster),
    ]
    return [each for each in objects if each is not None]


def pod_template(cluster: Cluster, etcd: EtcdAccess, platform: Platform = PLATFORM) -> Manifest:
    """The template of the brokers' pods."""
    built = stateful_set.stateful_set(cluster, platform, etcd, secrets_checksum="0123")
    template: Manifest = built["spec"]["template"]
    return template
