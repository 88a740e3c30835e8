"""The statuses of the custom resources, typed, and their conditions.

Invariants: unknown values are left out, so that a 0 is always counted. The `lastTransitionTime` of
a condition changes only with its status.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, field

from kafscale.operator.spec.base import list_map, text

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""A timestamp in RFC 3339."""
Amount = Annotated[int, Meta(ge=0)]

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"


Truth = Literal["True", "False", "Unknown"]
"""Whether a condition holds."""


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a status."""


class ConditionStatus(Status, frozen=True, kw_only=True):
    """A condition of the resource."""

    type: Annotated[str, Meta(min_length=1, description="The type of the condition.")]
    status: Annotated[Truth, text("Whether the condition holds.")]
    reason: Annotated[str, text("The reason in one word.")]
    message: Annotated[str, text("The reason in a sentence, and what to do.")]
    last_transition_time: Annotated[Time, text("When the status last changed.")]
    observed_generation: Annotated[
        Amount | None, text("The generation of the resource that was observed.")
    ] = None


Conditions = Annotated[list[ConditionStatus], list_map("type", "The conditions of the resource.")]


class Condition(msgspec.Struct, frozen=True):
    """One fact that is true, false or unknown."""

    type: str
    status: Truth
    reason: str
    """A CamelCase word, for programs."""
    message: str = ""
    """A sentence for people: what it is, and what to do."""


def ok(type_: str, reason: str, message: str = "") -> Condition:
    return Condition(type_, TRUE, reason, message)


def bad(type_: str, reason: str, message: str) -> Condition:
    return Condition(type_, FALSE, reason, message)


def unknown(type_: str, reason: str, message: str = "") -> Condition:
    return Condition(type_, UNKNOWN, reason, message)


def to_status(
    conditions: Iterable[Condition],
    before: Mapping[tuple[str, Truth], str],
    now: str,
    generation: int,
) -> list[ConditionStatus]:
    """Conditions as a status has them, by type; `now` is in RFC 3339.

    `before` has the transition times of the former conditions, by type and status.
    """
    return [
        ConditionStatus(
            type=each.type,
            status=each.status,
            reason=each.reason,
            message=each.message,
            last_transition_time=before.get((each.type, each.status), now),
            observed_generation=generation,
        )
        for each in sorted(conditions, key=lambda one: one.type)
    ]


class EtcdStatus(Status, frozen=True, kw_only=True):
    """The etcd in use."""

    managed: Annotated[bool, text("Whether the operator runs it.")]
    endpoints: Annotated[list[str], text("The addresses of its members.")] = field(
        default_factory=list
    )
    members: Annotated[Amount | None, text("The number of members.")] = None
    members_ready: Annotated[Amount | None, text("The number of healthy members.")] = None
    database_bytes: Annotated[
        Amount | None, text("The size of the largest database, in bytes.")
    ] = None


class SnapshotStatus(Status, frozen=True, kw_only=True):
    """The newest backup of the metadata."""

    last_time: Annotated[Time | None, text("When it was taken.")] = None
    last_key: Annotated[str, text("Its key in the bucket.")] = ""
    size_bytes: Annotated[Amount | None, text("Its size, in bytes.")] = None
    age_seconds: Annotated[Amount | None, text("Its age when this status was written.")] = None
    failures: Annotated[Amount | None, text("Failed attempts since then.")] = None


class ClusterStatus(Status, frozen=True, kw_only=True):
    """The observed state of a cluster."""

    phase: Annotated[str, text("The state of the cluster in one word.")] = ""
    observed_generation: Annotated[
        Amount | None, text("The generation of the resource that was observed.")
    ] = None
    broker_count: Annotated[Amount | None, text("The number of brokers.")] = None
    ready_brokers: Annotated[Amount | None, text("The number of brokers that serve clients.")] = (
        None
    )
    topic_count: Annotated[Amount | None, text("The number of topics.")] = None
    bootstrap_servers: Annotated[str, text("The bootstrap servers for clients, as host:port.")] = ""
    etcd: EtcdStatus | None = None
    snapshot: SnapshotStatus | None = None
    conditions: Conditions = field(default_factory=list)


class PartitionStatus(Status, frozen=True, kw_only=True):
    """A partition."""

    id: Annotated[int, Meta(ge=0, description="The index of the partition.")]
    leader: Annotated[str, text("The id of the leader. Missing: none.")] = ""
    log_end_offset: Annotated[
        Amount | None, text("The offset of the next record. Missing: unknown.")
    ] = None


class AppliedStatus(Status, frozen=True, kw_only=True):
    """What the operator last applied to the topic; only later changes are applied."""

    partitions: Annotated[Amount | None, text("The number of partitions applied.")] = None
    config: Annotated[dict[str, str], text("The configs applied.")] = field(default_factory=dict)


class TopicStatus(Status, frozen=True, kw_only=True):
    """The observed state of a topic."""

    phase: Annotated[str, text("The state of the topic in one word.")] = ""
    observed_generation: Annotated[
        Amount | None, text("The generation of the resource that was observed.")
    ] = None
    topic_id: Annotated[str, text("The unique id of the topic.")] = ""
    partitions: Annotated[list[PartitionStatus], list_map("id", "The partitions.")] = field(
        default_factory=list
    )
    applied: AppliedStatus | None = None
    conditions: Conditions = field(default_factory=list)


def as_manifest(status: Status) -> dict[str, Any]:
    """A status as Kubernetes expects it.

    >>> as_manifest(ClusterStatus(phase="Ready", topic_count=0))
    {'phase': 'Ready', 'topicCount': 0}
    """
    builtins: dict[str, Any] = msgspec.to_builtins(status)
    return builtins
