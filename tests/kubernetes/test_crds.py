"""Tests that a real API server accepts the CRDs, applies defaults and rejects invalid resources."""

import copy
import secrets
from pathlib import Path

import msgspec
import pytest
import yaml

from generators.crds.validation_rules import CLUSTER_RULES, TOPIC_RULES
from kafscale.operator.kube.api import CLUSTERS, TOPICS
from kafscale.operator.spec.cluster import ClusterSpec, read_cluster
from kafscale.operator.spec.status import (
    ClusterStatus,
    ConditionStatus,
    EtcdStatus,
    PartitionStatus,
    SnapshotStatus,
    TopicStatus,
    as_manifest,
)
from kafscale.operator.spec.topic import TopicSpec
from services.kubernetes.kube_client import ApiError, KubeClient

SAMPLES = Path(__file__).parents[2] / "config" / "samples"
CLUSTER = {"brokers": {}, "s3": {"bucket": "records"}}
TOPIC = {"clusterRef": "production", "partitions": 3}
SPECS = {CLUSTERS: CLUSTER, TOPICS: TOPIC}
NOW = "2026-01-02T03:04:05Z"

CASES = [
    (CLUSTERS, {}, {"etcd": {"useKubeEtcd": True, "endpoints": ["etcd:2379"]}}, "exclude"),
    (CLUSTERS, {}, {"etcd": {"restoreFrom": "latest", "endpoints": ["e:2379"]}}, "restoreFrom is"),
    (CLUSTERS, {}, {"etcd": {"restoreFrom": "latest", "useKubeEtcd": True}}, "restoreFrom is"),
    (CLUSTERS, {}, {"etcd": {"snapshots": {"staleAfterSeconds": 3599}}}, "cannot be stale"),
    (CLUSTERS, {}, {"autoscaling": {"minReplicas": 5, "maxReplicas": 4}}, "minReplicas exceeds"),
    (CLUSTERS, {}, {"brokers": {"replicas": 21}}, "brokers.replicas exceeds"),
    (CLUSTERS, {}, {"s3": {"createBucket": True}}, "kafscale-ENVIRONMENT-REGION"),
    (
        CLUSTERS,
        {},
        {"s3": {"createBucket": True, "bucket": "kafscale--us-east-1"}},
        "kafscale-ENVIRONMENT-REGION",
    ),
    (CLUSTERS, {}, {"s3": {"replication": True}}, "replication needs"),
    (CLUSTERS, {}, {"s3": {"namespace": "other"}}, "the namespace is immutable"),
    (CLUSTERS, {"s3": {"namespace": "old"}}, {"s3": {"namespace": None}}, "the namespace is"),
    (CLUSTERS, {}, {"etcd": {"managed": {"replicas": 5}}}, "the number of members"),
    (TOPICS, {}, {"clusterRef": "other"}, "cannot move to another cluster"),
    (TOPICS, {}, {"partitions": 2}, "can only be increased"),
    (TOPICS, {}, {"topicName": "Other"}, "cannot be renamed"),
    (TOPICS, {}, {"topicName": ".."}, "a topic cannot be named"),
    (TOPICS, {}, {"config": {"retention.ms": "1"}}, "use retentionMs"),
    (TOPICS, {}, {"config": {"retention.bytes": "1"}}, "use retentionBytes"),
]
"""The existing spec beyond the minimum, the change, and a part of the error message."""
VALID = [
    (CLUSTERS, {"autoscaling": {"enabled": False}, "brokers": {"replicas": 30}}),
    (CLUSTERS, {"autoscaling": {"minReplicas": 2}, "brokers": {"replicas": 30}}),
    (
        CLUSTERS,
        {
            "s3": {
                "createBucket": True,
                "environment": "prod",
                "region": "eu-west-1",
                "bucket": "kafscale-prod-eu-west-1",
            }
        },
    ),
    (CLUSTERS, {"s3": {"bucket": "arn:aws:s3:::records"}}),
    (
        CLUSTERS,
        {
            "s3": {
                "replication": True,
                "replicationBucket": "arn:aws:s3:::elsewhere",
                "replicationRoleArn": "arn:aws:iam::1:role/copy",
            }
        },
    ),
    (CLUSTERS, {"etcd": {"restoreFrom": "latest"}}),
    (TOPICS, {"partitions": 1024}),
    (TOPICS, {"config": {"cleanup.policy": "compact"}}),
]
OUT_OF_BOUNDS = [
    (CLUSTERS, {"brokers": {"replicas": 0}}, "greater than or equal to 1"),
    (CLUSTERS, {"brokers": {"resources": {"limits": {"cpu": "much"}}}}, "should match"),
    (CLUSTERS, {"s3": {"bucket": "No Bucket"}}, "should match"),
    (CLUSTERS, {"s3": {"credentialSource": "luck"}}, "Unsupported value"),
    (CLUSTERS, {"etcd": {"managed": {"replicas": 2}}}, "Unsupported value"),
    (CLUSTERS, {"etcd": {"tlsSecretRef": "../../victim/secrets/tls"}}, "should match"),
    (CLUSTERS, {"s3": {"credentialsSecretRef": "../../victim/secrets/keys"}}, "should match"),
    (CLUSTERS, {"brokers": {"envSecrets": ["../../victim/secrets/keys"]}}, "should match"),
    (TOPICS, {"clusterRef": "../../victim/production"}, "should match"),
    (TOPICS, {"partitions": 0}, "greater than or equal to 1"),
    (TOPICS, {"partitions": 1025}, "less than or equal to 1024"),
    (TOPICS, {"topicName": "no topic"}, "should match"),
]


def merge(spec, change):
    """As a merge patch does (RFC 7386)."""
    result = copy.deepcopy(spec)
    for name, value in change.items():
        if isinstance(value, dict):
            result[name] = merge(result.get(name, {}), value)
        elif value is None:
            result.pop(name)
        else:
            result[name] = value
    return result


def resource(kind, change=None, name=""):
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name or f"a-{secrets.token_hex(4)}"},
        "spec": merge(SPECS[kind], change or {}),
    }


@pytest.mark.parametrize("name", ["kafscaleclusters", "kafscaletopics"])
def test_definitions_are_established(definitions, name):
    [received] = [each for each in definitions if each["metadata"]["name"] == f"{name}.kafscale.io"]
    output = {each["type"]: each["status"] for each in received["status"]["conditions"]}
    assert output == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("file", ["cluster.yaml", "topic.yaml"])
def test_samples_apply_unchanged(kube: KubeClient, namespace, file):
    body = yaml.safe_load((SAMPLES / file).read_text())
    body["metadata"]["namespace"] = namespace
    received = kube.apply(body)
    assert merge(received["spec"], body["spec"]) == received["spec"]


@pytest.mark.usefixtures("definitions")
def test_cluster_gets_defaults(kube: KubeClient, namespace):
    received = kube.create(resource(CLUSTERS), namespace)
    desired = msgspec.convert(CLUSTER, ClusterSpec)
    assert read_cluster(received).spec == desired
    assert msgspec.convert(received["spec"], ClusterSpec) == desired
    assert received["spec"]["etcd"]["managed"]["resources"]["limits"] == {
        "cpu": "1",
        "memory": "2Gi",
    }
    assert "minReplicas" not in received["spec"]["autoscaling"]


@pytest.mark.usefixtures("definitions")
def test_topic_gets_defaults(kube: KubeClient, namespace):
    received = kube.create(resource(TOPICS), namespace)
    assert received["spec"] == msgspec.to_builtins(msgspec.convert(TOPIC, TopicSpec))


@pytest.mark.usefixtures("definitions")
def test_objects_are_defaulted_field_by_field(kube: KubeClient, namespace):
    change = {"brokers": {"resources": {"requests": {"cpu": "3"}}}}
    received = kube.create(resource(CLUSTERS, change), namespace)
    assert received["spec"]["brokers"]["resources"] == {
        "requests": {"cpu": "3", "memory": "1Gi"},
        "limits": {"cpu": "2", "memory": "4Gi"},
    }


@pytest.mark.usefixtures("definitions")
def test_null_counts_as_missing(kube: KubeClient, namespace):
    body = resource(CLUSTERS)
    body["spec"] |= {"etcd": None, "autoscaling": {"minReplicas": None}}
    body["spec"]["s3"]["pathStyle"] = None
    received = kube.create(body, namespace)
    assert read_cluster(received).spec == msgspec.convert(CLUSTER, ClusterSpec)


@pytest.mark.usefixtures("definitions")
def test_free_form_settings_are_kept(kube: KubeClient, namespace):
    settings = {"sasl": {"enabled": True, "mechanisms": ["PLAIN"]}, "listeners": [{"port": 9092}]}
    received = kube.create(resource(CLUSTERS, {"config": {"settings": settings}}), namespace)
    assert received["spec"]["config"]["settings"] == settings


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[-1])
def test_rule_rejects_a_violation(kube: KubeClient, namespace, case):
    kind, before, change, message = case
    body = resource(kind, before)
    kube.create(body, namespace)
    with pytest.raises(ApiError, match=message) as error:
        kube.patch(kind, namespace, body["metadata"]["name"], {"spec": change})
    assert error.value.status == 422


def test_every_rule_is_tested():
    for rules in (CLUSTER_RULES, TOPIC_RULES):
        for path, each in rules.items():
            for rule in each if path else ():
                assert any(message in rule.message for *_, message in CASES), rule.message


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (CLUSTERS, "1st", "start with a letter"),
        (CLUSTERS, "a.b", "start with a letter"),
        (CLUSTERS, "a" * 41, "at most 40"),
        (TOPICS, "a" * 250, "set topicName"),
    ],
)
def test_unusable_names_are_rejected(kube: KubeClient, namespace, kind, name, message):
    with pytest.raises(ApiError, match=message):
        kube.create(resource(kind, name=name), namespace)


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize(("kind", "name"), [(CLUSTERS, "a" * 40), (TOPICS, "a" * 249)])
def test_longest_names_are_accepted(kube: KubeClient, namespace, kind, name):
    assert kube.create(resource(kind, name=name), namespace)["metadata"]["name"] == name


@pytest.mark.usefixtures("definitions")
def test_topic_name_may_be_invalid_for_kubernetes(kube: KubeClient, namespace):
    body = resource(TOPICS, {"topicName": "Orders_of.Today"}, name="a" * 253)
    assert kube.create(body, namespace)["spec"]["topicName"] == "Orders_of.Today"


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize(("kind", "change"), VALID)
def test_valid_specs_are_accepted(kube: KubeClient, namespace, kind, change):
    body = resource(kind, change)
    kube.create(body, namespace)
    # Once more, since most rules apply to updates as well.
    assert kube.apply(body, namespace)["metadata"]["generation"] == 1


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize(("kind", "change", "message"), OUT_OF_BOUNDS)
def test_values_out_of_bounds_are_rejected(kube: KubeClient, namespace, kind, change, message):
    with pytest.raises(ApiError, match=message):
        kube.create(resource(kind, change), namespace)


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("missing", ["brokers", "s3"])
def test_required_fields_of_a_cluster(kube: KubeClient, namespace, missing):
    body = resource(CLUSTERS)
    del body["spec"][missing]
    with pytest.raises(ApiError, match=f"spec.{missing}: Required value"):
        kube.create(body, namespace)


@pytest.mark.usefixtures("definitions")
def test_unknown_field_is_rejected(kube: KubeClient, namespace):
    with pytest.raises(ApiError, match=r"\.spec\.bukkit"):
        kube.apply(resource(CLUSTERS, {"bukkit": "records"}), namespace)


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (
            CLUSTERS,
            ClusterStatus(
                phase="Ready",
                broker_count=0,
                etcd=EtcdStatus(managed=True, endpoints=["https://etcd-0:2379"]),
                snapshot=SnapshotStatus(last_time=NOW, last_key="a/b.db", failures=0),
                conditions=[
                    ConditionStatus(
                        type="Ready",
                        status="True",
                        reason="AllServe",
                        message="",
                        last_transition_time=NOW,
                    )
                ],
            ),
        ),
        (
            TOPICS,
            TopicStatus(
                phase="Ready", partitions=[PartitionStatus(id=0, leader="2", log_end_offset=7)]
            ),
        ),
    ],
)
def test_status_is_a_subresource(kube: KubeClient, namespace, kind, status):
    body = resource(kind)
    manifest = as_manifest(status)
    before = kube.apply(body | {"status": manifest}, namespace)
    assert "status" not in before
    only = {name: body[name] for name in ("apiVersion", "kind", "metadata")}
    after = kube.apply(only | {"status": manifest}, namespace, subresource="status")
    assert after["status"] == manifest
    assert after["spec"] == before["spec"]
    assert after["metadata"]["generation"] == 1


@pytest.mark.usefixtures("definitions")
def test_every_field_can_be_explained(kube: KubeClient):
    """`kubectl explain` reads the same document."""
    reported = kube.request("GET", "/openapi/v3/apis/kafscale.io/v1alpha1")["components"]["schemas"]
    part = reported["io.kafscale.v1alpha1.KafscaleCluster"]
    for name in ("spec", "s3", "namespace"):
        part = part["properties"][name]
        assert part["description"]
    assert part["description"].startswith("The prefix of all objects.")
