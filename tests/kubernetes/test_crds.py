"""A real API server takes the CRDs, fills resources in by them, and refuses what it should."""

import copy
import secrets
from pathlib import Path

import msgspec
import pytest
import yaml

from kafscale.operator.crd.validation_rules import CLUSTER_RULES, TOPIC_RULES
from kafscale.operator.kube.kinds import CLUSTERS, TOPICS
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
from services.kubernetes.kube_client import KubeClient, KubeRefusalError

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
"""What there is already, beyond the least; the change; and a part of what is said against it."""
WELCOME = [
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
    (TOPICS, {"partitions": 0}, "greater than or equal to 1"),
    (TOPICS, {"partitions": 1025}, "less than or equal to 1024"),
    (TOPICS, {"topicName": "no topic"}, "should match"),
]


def merged(spec, change):
    """As a merge patch does (RFC 7386)."""
    result = copy.deepcopy(spec)
    for name, value in change.items():
        if isinstance(value, dict):
            result[name] = merged(result.get(name, {}), value)
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
        "spec": merged(SPECS[kind], change or {}),
    }


@pytest.mark.parametrize("name", ["kafscaleclusters", "kafscaletopics"])
def test_a_definition_is_taken_as_it_is(definitions, name):
    [seen] = [each for each in definitions if each["metadata"]["name"] == f"{name}.kafscale.io"]
    said = {each["type"]: each["status"] for each in seen["status"]["conditions"]}
    assert said == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("file", ["cluster.yaml", "topic.yaml"])
def test_a_sample_applies_unchanged(kube: KubeClient, namespace, file):
    body = yaml.safe_load((SAMPLES / file).read_text())
    body["metadata"]["namespace"] = namespace
    seen = kube.apply(body)
    assert merged(seen["spec"], body["spec"]) == seen["spec"]


@pytest.mark.usefixtures("definitions")
def test_a_cluster_is_filled_in(kube: KubeClient, namespace):
    seen = kube.create(resource(CLUSTERS), namespace)
    wanted = msgspec.convert(CLUSTER, ClusterSpec)
    assert read_cluster(seen).spec == wanted
    assert msgspec.convert(seen["spec"], ClusterSpec) == wanted
    assert seen["spec"]["etcd"]["managed"]["resources"]["limits"] == {"cpu": "1", "memory": "2Gi"}
    assert "minReplicas" not in seen["spec"]["autoscaling"]


@pytest.mark.usefixtures("definitions")
def test_a_topic_is_filled_in(kube: KubeClient, namespace):
    seen = kube.create(resource(TOPICS), namespace)
    assert seen["spec"] == msgspec.to_builtins(msgspec.convert(TOPIC, TopicSpec))


@pytest.mark.usefixtures("definitions")
def test_who_writes_one_member_keeps_the_defaults_of_the_others(kube: KubeClient, namespace):
    change = {"brokers": {"resources": {"requests": {"cpu": "3"}}}}
    seen = kube.create(resource(CLUSTERS, change), namespace)
    assert seen["spec"]["brokers"]["resources"] == {
        "requests": {"cpu": "3", "memory": "1Gi"},
        "limits": {"cpu": "2", "memory": "4Gi"},
    }


@pytest.mark.usefixtures("definitions")
def test_null_is_as_good_as_nothing(kube: KubeClient, namespace):
    body = resource(CLUSTERS)
    body["spec"] |= {"etcd": None, "autoscaling": {"minReplicas": None}}
    body["spec"]["s3"]["pathStyle"] = None
    seen = kube.create(body, namespace)
    assert read_cluster(seen).spec == msgspec.convert(CLUSTER, ClusterSpec)


@pytest.mark.usefixtures("definitions")
def test_further_settings_are_kept_as_they_are(kube: KubeClient, namespace):
    settings = {"sasl": {"enabled": True, "mechanisms": ["PLAIN"]}, "listeners": [{"port": 9092}]}
    seen = kube.create(resource(CLUSTERS, {"config": {"settings": settings}}), namespace)
    assert seen["spec"]["config"]["settings"] == settings


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[-1])
def test_a_rule_refuses_what_breaks_it(kube: KubeClient, namespace, case):
    kind, before, change, message = case
    body = resource(kind, before)
    kube.create(body, namespace)
    with pytest.raises(KubeRefusalError, match=message) as refused:
        kube.patch(kind, namespace, body["metadata"]["name"], {"spec": change})
    assert refused.value.status == 422


def test_every_rule_is_broken_here_or_is_about_a_name():
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
def test_a_name_that_others_could_not_be_made_from_is_refused(
    kube: KubeClient, namespace, kind, name, message
):
    with pytest.raises(KubeRefusalError, match=message):
        kube.create(resource(kind, name=name), namespace)


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize(("kind", "name"), [(CLUSTERS, "a" * 40), (TOPICS, "a" * 249)])
def test_the_longest_name_is_taken(kube: KubeClient, namespace, kind, name):
    assert kube.create(resource(kind, name=name), namespace)["metadata"]["name"] == name


@pytest.mark.usefixtures("definitions")
def test_a_topic_may_have_a_name_that_is_none_for_kubernetes(kube: KubeClient, namespace):
    body = resource(TOPICS, {"topicName": "Orders_of.Today"}, name="a" * 253)
    assert kube.create(body, namespace)["spec"]["topicName"] == "Orders_of.Today"


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize(("kind", "change"), WELCOME)
def test_a_rule_lets_pass_what_keeps_it(kube: KubeClient, namespace, kind, change):
    body = resource(kind, change)
    kube.create(body, namespace)
    # The same once more, since most rules are asked about changes, too.
    assert kube.apply(body, namespace)["metadata"]["generation"] == 1


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize(("kind", "change", "message"), OUT_OF_BOUNDS)
def test_what_is_out_of_bounds_is_refused(kube: KubeClient, namespace, kind, change, message):
    with pytest.raises(KubeRefusalError, match=message):
        kube.create(resource(kind, change), namespace)


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("missing", ["brokers", "s3"])
def test_a_cluster_without_what_it_needs_is_refused(kube: KubeClient, namespace, missing):
    body = resource(CLUSTERS)
    del body["spec"][missing]
    with pytest.raises(KubeRefusalError, match=f"spec.{missing}: Required value"):
        kube.create(body, namespace)


@pytest.mark.usefixtures("definitions")
def test_a_field_that_does_not_exist_is_refused(kube: KubeClient, namespace):
    with pytest.raises(KubeRefusalError, match=r"\.spec\.bukkit"):
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
def test_a_status_is_written_beside_the_spec(kube: KubeClient, namespace, kind, status):
    body = resource(kind)
    written = as_manifest(status)
    before = kube.apply(body | {"status": written}, namespace)
    assert "status" not in before
    only = {name: body[name] for name in ("apiVersion", "kind", "metadata")}
    after = kube.apply(only | {"status": written}, namespace, subresource="status")
    assert after["status"] == written
    assert after["spec"] == before["spec"]
    assert after["metadata"]["generation"] == 1


@pytest.mark.usefixtures("definitions")
def test_every_field_can_be_explained(kube: KubeClient):
    """`kubectl explain` reads what is read here."""
    told = kube.request("GET", "/openapi/v3/apis/kafscale.io/v1alpha1")["components"]["schemas"]
    part = told["io.kafscale.v1alpha1.KafscaleCluster"]
    for name in ("spec", "s3", "namespace"):
        part = part["properties"][name]
        assert part["description"]
    assert part["description"].startswith("The prefix of all objects.")
