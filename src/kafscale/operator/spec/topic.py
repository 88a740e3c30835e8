"""KafscaleTopic: the desired state of a topic."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from kafscale.metadata.topics.config_defs import WEEK_MS
from kafscale.operator.spec.base import ObjectName, text


class TopicSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The desired state of a topic."""

    cluster_ref: Annotated[
        ObjectName, text("The name of the KafscaleCluster in the same namespace.")
    ]
    partitions: Annotated[
        int,
        Meta(
            ge=1,
            le=1024,
            description="The minimum number of partitions. It can only be increased; partitions"
            " that were added through Kafka's API stay.",
        ),
    ]
    topic_name: Annotated[
        str,
        Meta(
            max_length=249,
            pattern=r"^[A-Za-z0-9._-]*$",
            description="The name of the topic in Kafka, if it is not a valid name in Kubernetes."
            " Empty: the name of the resource. Immutable.",
        ),
    ] = ""
    retention_ms: Annotated[
        int, Meta(ge=-1, description="How long records are kept, in milliseconds; -1 is forever.")
    ] = WEEK_MS
    retention_bytes: Annotated[
        int, Meta(ge=-1, description="How many bytes a partition keeps; -1 is unlimited.")
    ] = -1
    config: Annotated[
        dict[str, str],
        Meta(
            max_length=200,
            description="Configs of the topic, by Kafka's names. Configs that are not listed here"
            " may be changed through Kafka's API.",
        ),
    ] = msgspec.field(default_factory=dict)
    deletion_policy: Annotated[
        Literal["Delete", "Retain"],
        Meta(description="Whether the topic and its records are deleted with this resource."),
    ] = "Delete"


class TopicResource(msgspec.Struct, frozen=True, kw_only=True):
    """A KafscaleTopic as the API server returns it."""

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
    """Parse a resource from the API server; raises `msgspec.ValidationError`."""
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
