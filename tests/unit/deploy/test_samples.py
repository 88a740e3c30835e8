"""Tests that the samples are those of the specification, and match the schema."""

from pathlib import Path

import pytest
import yaml

from generators.crds.definitions import RESOURCES, schema
from kafscale.operator.spec.cluster import read_cluster
from kafscale.operator.spec.topic import read_topic
from unit.generators.crds.structural import violations_of, with_defaults

SAMPLES = Path(__file__).parents[3] / "config" / "samples"
SCHEMAS = {resource.kind.kind: schema(resource) for resource in RESOURCES}
OURS = [
    pytest.param(document, id=f"{path.stem} of {path.parent.name}")
    for path in sorted(SAMPLES.rglob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    if document["kind"] in SCHEMAS
]
SERVER_METADATA = {"namespace": "kafscale", "uid": "1"}


def sample(name):
    return yaml.safe_load((SAMPLES / name).read_text())


@pytest.mark.parametrize("body", OURS)
def test_samples_match_the_schema(body):
    whole = SCHEMAS[body["kind"]]
    assert violations_of(with_defaults(body, whole)["spec"], whole["properties"]["spec"]) == []


def test_samples_exist_for_both_kinds():
    assert len(OURS) == 4


def test_cluster_sample_is_that_of_the_specification():
    assert sample("cluster.yaml") == {
        "apiVersion": "kafscale.io/v1alpha1",
        "kind": "KafscaleCluster",
        "metadata": {"name": "production", "namespace": "kafscale"},
        "spec": {
            "brokers": {
                "replicas": 3,
                "resources": {
                    "requests": {"cpu": "1", "memory": "2Gi"},
                    "limits": {"cpu": "4", "memory": "8Gi"},
                },
            },
            "s3": {
                "bucket": "kafscale-production-data",
                "region": "eu-west-1",
                "credentialsSecret": "kafscale-s3-credentials",
            },
            "etcd": {
                "endpoints": [f"kafscale-etcd-{member}.kafscale-etcd:2379" for member in range(3)]
            },
            "config": {"segmentBytes": 104857600, "flushIntervalMs": 500, "cacheSize": "4Gi"},
        },
    }


def test_topic_sample_is_that_of_the_specification():
    assert sample("topic.yaml") == {
        "apiVersion": "kafscale.io/v1alpha1",
        "kind": "KafscaleTopic",
        "metadata": {"name": "orders", "namespace": "kafscale"},
        "spec": {
            "clusterRef": "production",
            "partitions": 12,
            "retentionMs": 604800000,
            "config": {"compression.type": "snappy"},
        },
    }


def test_try_out_samples_refer_to_each_other():
    body = sample("try-out/cluster.yaml")
    cluster = read_cluster(body | {"metadata": body["metadata"] | SERVER_METADATA})
    secret, service, server = yaml.safe_load_all((SAMPLES / "try-out/minio.yaml").read_text())
    port = service["spec"]["ports"][0]["port"]
    assert cluster.spec.s3.secret == secret["metadata"]["name"]
    assert cluster.spec.s3.endpoint == f"http://{service['metadata']['name']}:{port}"
    labels = server["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == server["spec"]["selector"]["matchLabels"] == labels
    body = sample("try-out/topic.yaml")
    topic = read_topic(body | {"metadata": body["metadata"] | SERVER_METADATA})
    assert topic.spec.cluster_ref == cluster.name
