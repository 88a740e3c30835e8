"""Tests that the definitions match the specification, and are valid for Kubernetes."""

import msgspec
import pytest

from generators.crds.definitions import RESOURCES, definitions, schema
from kafscale.operator.spec.cluster import ClusterSpec
from kafscale.operator.spec.topic import TopicSpec
from unit.generators.crds.structural import parts, problems, violations_of, with_defaults

CLUSTER, TOPIC = definitions()
CLUSTER_SCHEMA, TOPIC_SCHEMA = (schema(each) for each in RESOURCES)
MINIMAL_CLUSTER = {"brokers": {}, "s3": {"bucket": "records"}}
MINIMAL_TOPIC = {"clusterRef": "production", "partitions": 1}

both = pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.kind.kind)


def cluster_fields(path):
    part = CLUSTER_SCHEMA["properties"]["spec"]
    for name in path.split("."):
        part = part["properties"][name]
    return {name: field.get("default") for name, field in part["properties"].items()}


@both
def test_schema_is_structural(resource):
    assert problems(schema(resource)) == []


@both
def test_every_field_has_a_description(resource):
    whole = schema(resource)
    for kind in ("spec", "status"):
        for path, part in parts(whole["properties"][kind], kind):
            if not path.endswith(("[]", "{}")):
                assert part["description"].endswith("."), path


@both
def test_columns_refer_to_existing_fields(resource):
    known = {path: part["type"] for path, part in parts(schema(resource))}
    known |= {"metadata.creationTimestamp": "string"}
    for column in resource.columns:
        expected_type = "string" if column.type == "date" else column.type
        assert known[column.path.removeprefix(".")] == expected_type


def test_columns_match_the_specification():
    narrow, wide = (
        [
            [column.name for column in resource.columns if column.is_wide == is_wide]
            for resource in RESOURCES
        ]
        for is_wide in (False, True)
    )
    assert narrow == [
        ["Phase", "Brokers", "Topics", "Age"],
        ["Cluster", "Partitions", "Phase", "Age"],
    ]
    assert wide == [["Bootstrap", "Etcd", "Snapshot"], []]


@pytest.mark.parametrize(
    ("definition", "plural", "kind", "short_name"),
    [
        (CLUSTER, "kafscaleclusters", "KafscaleCluster", "kfs"),
        (TOPIC, "kafscaletopics", "KafscaleTopic", "kt"),
    ],
)
def test_names_and_versions(definition, plural, kind, short_name):
    spec = definition["spec"]
    assert definition["metadata"]["name"] == f"{plural}.kafscale.io"
    assert (spec["group"], spec["scope"]) == ("kafscale.io", "Namespaced")
    assert (spec["names"]["plural"], spec["names"]["kind"]) == (plural, kind)
    assert spec["names"]["singular"] == kind.lower()
    assert spec["names"]["shortNames"] == [short_name]
    assert spec["names"]["categories"] == ["kafscale"]
    [version] = spec["versions"]
    assert version["name"] == "v1alpha1"
    assert version["served"]
    assert version["storage"]
    assert version["subresources"] == {"status": {}}


def test_cluster_requires_brokers_and_bucket():
    spec = CLUSTER_SCHEMA["properties"]["spec"]
    assert CLUSTER_SCHEMA["required"] == ["spec"]
    assert set(spec["required"]) == {"brokers", "s3"}
    assert spec["properties"]["s3"]["required"] == ["bucket"]
    assert "required" not in spec["properties"]["brokers"]


def test_cluster_defaults_match_the_specification():
    replicas = CLUSTER_SCHEMA["properties"]["spec"]["properties"]["brokers"]["properties"][
        "replicas"
    ]
    assert (replicas["minimum"], replicas["default"]) == (1, 3)
    assert cluster_fields("brokers.resources.requests") == {"cpu": "500m", "memory": "1Gi"}
    assert cluster_fields("brokers.resources.limits") == {"cpu": "2", "memory": "4Gi"}
    s3 = cluster_fields("s3")
    assert s3["region"] == "us-east-1"
    assert {"bucket", "endpoint", "kmsKeyArn", "replication"} <= set(s3)
    assert {"credentialsSecret", "credentialsSecretRef"} <= set(s3)
    assert cluster_fields("etcd")["useKubeEtcd"] is False
    settings = cluster_fields("config")
    assert settings["segmentBytes"] == 104_857_600
    assert settings["flushIntervalMs"] == 500
    assert settings["cacheSize"] == "2Gi"


def test_topic_matches_the_specification():
    spec = TOPIC_SCHEMA["properties"]["spec"]
    fields = spec["properties"]
    assert spec["required"] == ["clusterRef", "partitions"]
    assert (fields["partitions"]["minimum"], fields["partitions"]["maximum"]) == (1, 1024)
    assert fields["retentionMs"]["default"] == 604_800_000
    assert fields["retentionBytes"]["default"] == -1
    assert fields["config"]["additionalProperties"] == {"type": "string"}


def test_statuses_match_the_specification():
    cluster = CLUSTER_SCHEMA["properties"]["status"]["properties"]
    assert {"phase", "brokerCount", "topicCount"} <= set(cluster)
    fields = {"type", "status", "lastTransitionTime", "reason", "message"}
    assert fields == set(cluster["conditions"]["items"]["required"])
    topic = TOPIC_SCHEMA["properties"]["status"]["properties"]
    assert set(topic["partitions"]["items"]["properties"]) == {"id", "leader", "logEndOffset"}
    assert topic["partitions"]["items"]["properties"]["leader"]["type"] == "string"


@pytest.mark.parametrize(
    ("whole", "struct", "minimal"),
    [(CLUSTER_SCHEMA, ClusterSpec, MINIMAL_CLUSTER), (TOPIC_SCHEMA, TopicSpec, MINIMAL_TOPIC)],
)
def test_defaults_of_schema_and_classes_agree(whole, struct, minimal):
    spec = with_defaults(minimal, whole["properties"]["spec"])
    assert violations_of(spec, whole["properties"]["spec"]) == []
    assert msgspec.convert(spec, struct) == msgspec.convert(minimal, struct)
    # The schema defaults everything; the classes only add what may be unset.
    expected = msgspec.to_builtins(msgspec.convert(minimal, struct))
    assert spec == _without_none(expected)


def _without_none(value):
    if isinstance(value, dict):
        return {name: _without_none(each) for name, each in value.items() if each is not None}
    return value
