"""Topic resources and topics for several tests."""

from kafscale.metadata.schema.model import Topic
from kafscale.operator.kube.api import TOPICS
from kafscale.operator.spec.status import AppliedStatus, TopicStatus
from kafscale.operator.spec.topic import read_topic

NAMESPACE = "default"
ID = bytes(range(16))
WEEK = "604800000"


def manifest(name="orders", **spec):
    """A resource as people write it."""
    return {
        "apiVersion": TOPICS.api_version,
        "kind": TOPICS.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"clusterRef": "production", "partitions": 3} | spec,
    }


def resource(name="orders", *, status=None, created="2025-06-15T00:00:00Z", **spec):
    """A resource as the API server returns it."""
    body = manifest(name, **spec)
    body["metadata"] |= {"uid": f"uid of {name}", "generation": 1, "creationTimestamp": created}
    return read_topic(body | {"status": status or {}})


def topic(partitions=3, *, id_=ID, **configs):
    """A topic as the topic store has it."""
    return Topic(
        name="orders", id=id_, partitions=partitions, configs=with_dots(configs), created_ms=1
    )


def applied_status(partitions=3, *, retention_ms=WEEK, retention_bytes="-1", **configs):
    """The status of a resource that was applied to `topic`."""
    config = with_dots(
        {"retention_ms": retention_ms, "retention_bytes": retention_bytes, **configs}
    )
    return TopicStatus(
        phase="Ready",
        topic_id=ID.hex(),
        applied=AppliedStatus(partitions=partitions, config=config),
    )


def with_dots(configs):
    """Configs by Kafka's names."""
    return {name.replace("_", "."): value for name, value in configs.items()}
