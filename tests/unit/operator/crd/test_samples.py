"""The samples are the specification's, and fit."""

from pathlib import Path

import pytest
import yaml

from kafscale.operator.crd.definitions import RESOURCES, schema
from kafscale.operator.spec.cluster import read_cluster
from kafscale.operator.spec.topic import read_topic
from unit.operator.crd.structural import complaints, filled

SAMPLES = Path(__file__).parents[4] / "config" / "samples"
SCHEMAS = {resource.kind.kind: schema(resource) for resource in RESOURCES}
OURS = [
    pytest.param(document, id=f"{path.stem} of {path.parent.name}")
    for path in sorted(SAMPLES.rglob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    if document["kind"] in SCHEMAS
]
GIVEN = {"namespace": "kafscale", "uid": "1"}


def sample(name):
    return yaml.safe_load((SAMPLES / name).read_text())


@pytest.mark.parametrize("body", OURS)
def test_a_sample_fits(body):
    whole = SCHEMAS[body["kind"]]
    assert complaints(filled(body, whole)["spec"], whole["properties"]["spec"]) == []


def test_there_are_samples_of_both_kinds():
    assert len(OURS) == 4


def test_the_cluster_is_that_of_the_specification():
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


def test_the_topic_is_that_of_the_specification():
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


def test_what_is_tried_out_belongs_together():
    body = sample("try-out/cluster.yaml")
    cluster = read_cluster(body | {"metadata": body["metadata"] | GIVEN})
    secret, service, server = yaml.safe_load_all((SAMPLES / "try-out/minio.yaml").read_text())
    port = service["spec"]["ports"][0]["port"]
    assert cluster.spec.s3.secret == secret["metadata"]["name"]
    assert cluster.spec.s3.endpoint == f"http://{service['metadata']['name']}:{port}"
    labels = server["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == server["spec"]["selector"]["matchLabels"] == labels
    body = sample("try-out/topic.yaml")
    topic = read_topic(body | {"metadata": body["metadata"] | GIVEN})
    assert topic.spec.cluster_ref == cluster.name
