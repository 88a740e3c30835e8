"""Tests that every field of a cluster's spec has an effect, on a manifest or in another part."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

import kafscale.operator
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.spec.cluster import ClusterSpec
from unit.operator.manifests.clusters import PLATFORM, cluster, manifests

OPERATOR = Path(kafscale.operator.__file__).parent
ETCD = EtcdAccess(endpoints=("etcd-0:2379",))

CHANGES: dict[str, Any] = {
    "brokers.replicas": 5,
    "brokers.resources.requests.cpu": "750m",
    "brokers.resources.requests.memory": "3Gi",
    "brokers.resources.limits.cpu": "3",
    "brokers.resources.limits.memory": "6Gi",
    "brokers.image": "example/broker:9",
    "brokers.nodeSelector": {"disk": "none"},
    "brokers.tolerations": [{"operator": "Exists"}],
    "brokers.priorityClassName": "streams",
    "brokers.podAnnotations": {"team": "data"},
    "brokers.serviceAccountAnnotations": {"role": "brokers"},
    "brokers.secrets": [{"name": "listener-tls", "mountPath": "/etc/tls"}],
    "brokers.envSecrets": ["users"],
    "brokers.terminationGracePeriodSeconds": 90,
    "s3.bucket": "another-bucket",
    "s3.region": "eu-west-1",
    "s3.endpoint": "http://minio:9000",
    "s3.pathStyle": True,
    "s3.namespace": "streams",
    "s3.storageClass": "GLACIER_IR",
    "s3.kmsKeyArn": "arn:aws:kms:eu-west-1:1:key/k",
    "s3.credentialsSecretRef": "keys",
    "s3.credentialsSecret": "keys",
    "s3.credentialSource": "iam",
    "s3.roleArn": "arn:aws:iam::1:role/bucket",
    "config.segmentBytes": 1048576,
    "config.flushIntervalMs": 100,
    "config.cacheSize": "1Gi",
    "config.settings": {"logging": {"level": "debug"}},
    "tls.enabled": True,
    "service.type": "LoadBalancer",
    "service.annotations": {"scheme": "internal"},
    "autoscaling.enabled": False,
    "autoscaling.minReplicas": 2,
    "autoscaling.maxReplicas": 30,
    "autoscaling.targetCpuUtilization": 50,
    "autoscaling.targetMemoryUtilization": 50,
    "autoscaling.targetProduceRequestsPerSecond": 500,
    "networkPolicy.enabled": False,
    "networkPolicy.monitoringNamespaceLabels": {"purpose": "metrics"},
    "monitoring.serviceMonitor": False,
    "monitoring.labels": {"release": "prometheus"},
    "monitoring.intervalSeconds": 10,
}
"""Fields used by the manifests of brokers, with a value that is not the default."""

OTHER_PARTS = {
    "s3.createBucket": "cluster: the bucket",
    "s3.environment": "crd: the name of a created bucket",
    "s3.manageLifecycle": "cluster: the bucket",
    "s3.archive.enabled": "cluster: the bucket",
    "s3.archive.afterDays": "cluster: the bucket",
    "s3.archive.storageClass": "cluster: the bucket",
    "s3.replication": "cluster: the bucket",
    "s3.replicationBucket": "cluster: the bucket",
    "s3.replicationRoleArn": "cluster: the bucket",
    "tls.hosts": "cluster: the certificates of listeners",
    "autoscaling.scaleToZero.enabled": "cluster: scale to zero",
    "autoscaling.scaleToZero.idleSeconds": "cluster: scale to zero",
    "etcd.endpoints": "etcd: endpoint resolution",
    "etcd.useKubeEtcd": "etcd: endpoint resolution",
    "etcd.tlsSecretRef": "etcd: endpoint resolution",
    "etcd.credentialsSecretRef": "etcd: endpoint resolution",
    "etcd.restoreFrom": "manifests: the pods of etcd",
    "etcd.managed.replicas": "manifests: the pods of etcd",
    "etcd.managed.image": "manifests: the pods of etcd",
    "etcd.managed.storage": "manifests: the pods of etcd",
    "etcd.managed.storageClassName": "manifests: the pods of etcd",
    "etcd.managed.quota": "manifests: the pods of etcd",
    "etcd.managed.compactionRetention": "manifests: the pods of etcd",
    "etcd.managed.resources.requests.cpu": "manifests: the pods of etcd",
    "etcd.managed.resources.requests.memory": "manifests: the pods of etcd",
    "etcd.managed.resources.limits.cpu": "manifests: the pods of etcd",
    "etcd.managed.resources.limits.memory": "manifests: the pods of etcd",
    "etcd.managed.defragment": "etcd: defragmentation",
    "etcd.snapshots.enabled": "etcd: backups",
    "etcd.snapshots.bucket": "etcd: backups",
    "etcd.snapshots.region": "etcd: backups",
    "etcd.snapshots.endpoint": "etcd: backups",
    "etcd.snapshots.credentialsSecretRef": "etcd: backups",
    "etcd.snapshots.createBucket": "etcd: backups",
    "etcd.snapshots.prefix": "etcd: backups",
    "etcd.snapshots.intervalSeconds": "etcd: backups",
    "etcd.snapshots.retain": "etcd: backups",
    "etcd.snapshots.staleAfterSeconds": "etcd: backups",
}
"""Fields used elsewhere, and where; the tests of those parts show their effect."""

PLATFORM_CHANGES: dict[str, Any] = {
    "image_pull_secrets": ("registry-keys",),
    "broker_image": "example/broker:10",
    "namespace": "elsewhere",
    "control_address": "operator.kafscale:9094",
    "cluster_domain": "example.internal",
}
ETCD_CHANGES: dict[str, Any] = {
    "endpoints": ("etcd-1:2379",),
    "tls_secret": "etcd-tls",
    "credentials_secret": "etcd-user",
}


def leaves(struct: type, prefix: str = "") -> Iterator[str]:
    """The path of every field that holds a value and not further fields."""
    for field in msgspec.inspect.type_info(struct).fields:  # type: ignore[attr-defined]
        kind = field.type
        if isinstance(kind, msgspec.inspect.Metadata):
            kind = kind.type
        path = f"{prefix}{field.encode_name}"
        if isinstance(kind, msgspec.inspect.StructType):
            yield from leaves(kind.cls, f"{path}.")
        else:
            yield path


def spec(**changes: Any) -> dict[str, Any]:
    """The smallest spec, with fields by path."""
    tree: dict[str, Any] = yaml.safe_load("{brokers: {}, s3: {bucket: records}}")
    for path, value in changes.items():
        *groups, key = path.split(".")
        branch = tree
        for group in groups:
            branch = branch.setdefault(group, {})
        branch[key] = value
        if groups[-1:] in (["requests"], ["limits"]):
            branch.setdefault("cpu", "1")
            branch.setdefault("memory", "2Gi")
    return tree


def test_every_field_is_accounted_for():
    assert sorted([*CHANGES, *OTHER_PARTS]) == sorted(leaves(ClusterSpec))


@pytest.mark.parametrize("path", CHANGES)
def test_field_changes_a_manifest(path):
    group = path.rpartition(".")[0]
    plain: dict[str, Any] = {}
    if group.endswith(("requests", "limits")):
        # Both amounts are required, so that the other one does not make the difference.
        plain = {f"{group}.cpu": "1", f"{group}.memory": "2Gi"}
    before = manifests(cluster(spec(**plain)), ETCD)
    assert manifests(cluster(spec(**{**plain, path: CHANGES[path]})), ETCD) != before


@pytest.mark.parametrize("path", OTHER_PARTS)
def test_field_of_another_part_is_read_there(path):
    """Checked by text: a field that is not read anywhere has no effect."""
    keys = [key for key in path.split(".") if key not in {"requests", "limits", "cpu", "memory"}]
    attribute = re.sub(r"(?=[A-Z])", "_", keys[-1]).lower()
    # CEL rules use the names in YAML.
    read = re.compile(rf"\.({attribute}|{keys[-1]})\b")
    files = {*OPERATOR.rglob("*.py"), *OPERATOR.glob("crds/*.yaml")} - {*OPERATOR.glob("spec/*.py")}
    assert any(read.search(file.read_text(encoding="utf-8")) for file in files)


@pytest.mark.parametrize("name", PLATFORM_CHANGES)
def test_platform_field_changes_a_manifest(name):
    changed_input = msgspec.structs.replace(PLATFORM, **{name: PLATFORM_CHANGES[name]})
    plain = cluster(spec())
    assert manifests(plain, ETCD, changed_input) != manifests(plain, ETCD)


def test_other_platform_fields_are_for_etcd():
    known = {*PLATFORM_CHANGES, "operator_image", "etcd_image"}
    assert known == set(Platform.__struct_fields__)


@pytest.mark.parametrize("name", ETCD_CHANGES)
def test_etcd_access_changes_a_manifest(name):
    changed_input = msgspec.structs.replace(ETCD, **{name: ETCD_CHANGES[name]})
    plain = cluster(spec())
    assert manifests(plain, changed_input) != manifests(plain, ETCD)


def test_changed_secret_changes_the_pods():
    plain = cluster(spec())
    before, after = (manifests(plain, ETCD, checksum=checksum) for checksum in ("1", "2"))
    [changed] = [each for each in after if each not in before]
    assert changed["kind"] == "StatefulSet"
