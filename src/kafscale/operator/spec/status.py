"""What is found: the statuses of our two resources, typed, as the schemas in the CRDs have them.

The laws: what is not known is left out, so that a nought is always a nought that was counted; who
reports builds one of these and lets `as_manifest` write it.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from kafscale.operator.spec.base import keyed, text

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""A moment as RFC 3339 writes it."""
Amount = Annotated[int, Meta(ge=0)]


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a status."""


class ConditionStatus(Status, frozen=True, kw_only=True):
    """One thing that is true, false or not known."""

    type: Annotated[str, Meta(min_length=1, description="What it is about.")]
    status: Annotated[Literal["True", "False", "Unknown"], text("Whether it is so.")]
    reason: Annotated[str, text("Why, in one word.")]
    message: Annotated[str, text("Why, and what to do, in a sentence.")]
    last_transition_time: Annotated[Time, text("Since when.")]
    observed_generation: Annotated[
        Amount | None, text("The generation of the resource that this was found of.")
    ] = None


Conditions = Annotated[
    list[ConditionStatus], keyed("type", "What is true of the resource, since when, and why.")
]


class EtcdStatus(Status, frozen=True, kw_only=True):
    """The etcd in use."""

    managed: Annotated[bool, text("Whether the operator runs it.")]
    endpoints: Annotated[list[str], text("Where its members are.")] = field(default_factory=list)
    members: Annotated[Amount | None, text("How many members it has.")] = None
    members_ready: Annotated[Amount | None, text("How many of them are healthy.")] = None
    database_bytes: Annotated[
        Amount | None, text("The size of the largest database, in bytes.")
    ] = None


class SnapshotStatus(Status, frozen=True, kw_only=True):
    """The newest backup of the metadata."""

    last_time: Annotated[Time | None, text("When it was taken.")] = None
    last_key: Annotated[str, text("Its key in the bucket.")] = ""
    size_bytes: Annotated[Amount | None, text("Its size, in bytes.")] = None
    age_seconds: Annotated[Amount | None, text("Its age when this status was written.")] = None
    failures: Annotated[Amount | None, text("How many attempts have failed since.")] = None


class ClusterStatus(Status, frozen=True, kw_only=True):
    """What was found of a cluster."""

    phase: Annotated[str, text("What the cluster is about, in one word.")] = ""
    observed_generation: Annotated[
        Amount | None, text("The generation of the resource that this status was found of.")
    ] = None
    broker_count: Annotated[Amount | None, text("How many brokers there are.")] = None
    ready_brokers: Annotated[Amount | None, text("How many of them serve clients.")] = None
    topic_count: Annotated[Amount | None, text("How many topics there are.")] = None
    bootstrap_servers: Annotated[str, text("Where clients begin, as host:port.")] = ""
    etcd: EtcdStatus | None = None
    snapshot: SnapshotStatus | None = None
    conditions: Conditions = field(default_factory=list)


class PartitionStatus(Status, frozen=True, kw_only=True):
    """A partition."""

    id: Annotated[int, Meta(ge=0, description="Its number in the topic.")]
    leader: Annotated[str, text("The id of the broker that leads it. Left out: none does.")] = ""
    log_end_offset: Annotated[
        Amount | None, text("The offset that the next record will get. Left out: not known.")
    ] = None


class AppliedStatus(Status, frozen=True, kw_only=True):
    """What the operator last made of the topic: only what has changed since is made again."""

    partitions: Annotated[Amount | None, text("How many partitions were asked for.")] = None
    config: Annotated[dict[str, str], text("Which configs were set.")] = field(default_factory=dict)


class TopicStatus(Status, frozen=True, kw_only=True):
    """What was found of a topic."""

    phase: Annotated[str, text("What the topic is about, in one word.")] = ""
    observed_generation: Annotated[
        Amount | None, text("The generation of the resource that this status was found of.")
    ] = None
    topic_id: Annotated[str, text("The id of the topic, which no other topic ever has.")] = ""
    partitions: Annotated[list[PartitionStatus], keyed("id", "The partitions, as they are.")] = (
        field(default_factory=list)
    )
    applied: AppliedStatus | None = None
    conditions: Conditions = field(default_factory=list)


def as_conditions(written: list[dict[str, Any]]) -> list[ConditionStatus]:
    """Conditions as `kafscale.operator.conditions.written` writes them, typed."""
    return msgspec.convert(written, list[ConditionStatus])


def as_manifest(status: Status) -> dict[str, Any]:
    """A status as Kubernetes takes it.

    >>> as_manifest(ClusterStatus(phase="Ready", topic_count=0))
    {'phase': 'Ready', 'topicCount': 0}
    """
    builtins: dict[str, Any] = msgspec.to_builtins(status)
    return builtins
