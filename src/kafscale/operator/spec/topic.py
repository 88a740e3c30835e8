"""KafscaleTopic: a topic of a cluster, as it is wanted."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from kafscale.metadata.topics.config_defs import WEEK_MS


class TopicSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is wanted of a topic."""

    cluster_ref: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=253,
            description="The name of the KafscaleCluster, in the same namespace.",
        ),
    ]
    partitions: Annotated[
        int,
        Meta(
            ge=1,
            le=1024,
            description="How many partitions the topic has at least. It can grow and never shrinks;"
            " partitions that were added through Kafka's API stay.",
        ),
    ]
    topic_name: Annotated[
        str,
        Meta(
            max_length=249,
            pattern=r"^[A-Za-z0-9._-]*$",
            description="What the topic is called in Kafka, where that is no name for Kubernetes."
            " Empty is the name of the resource. It cannot be changed.",
        ),
    ] = ""
    retention_ms: Annotated[
        int, Meta(ge=-1, description="How long records are kept, in milliseconds; -1 is for ever.")
    ] = WEEK_MS
    retention_bytes: Annotated[
        int, Meta(ge=-1, description="How much a partition keeps, in bytes; -1 knows no limit.")
    ] = -1
    config: Annotated[
        dict[str, str],
        Meta(
            max_length=200,
            description="Configs of the topic, by Kafka's names. What is not named here may be set"
            " through Kafka's API, and is left alone.",
        ),
    ] = msgspec.field(default_factory=dict)
    deletion_policy: Annotated[
        Literal["Delete", "Retain"],
        Meta(
            description="What becomes of the topic and its records when this resource is deleted."
        ),
    ] = "Delete"


class TopicResource(msgspec.Struct, frozen=True, kw_only=True):
    """A KafscaleTopic as Kubernetes has it."""

    name: str
    namespace: str
    uid: str
    generation: int
    created_at: str
    spec: TopicSpec
    status: dict[str, Any]

    @property
    def topic_name(self) -> str:
        return self.spec.topic_name or self.name


def read_topic(body: dict[str, Any]) -> TopicResource:
    """A resource from what the API server says; raises `msgspec.ValidationError`."""
    metadata = body["metadata"]
    return TopicResource(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        created_at=metadata.get("creationTimestamp", ""),
        spec=msgspec.convert(body["spec"], TopicSpec),
        status=dict(body.get("status") or {}),
    )
