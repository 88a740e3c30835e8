"""What a request needs: API by resource by operation, in one table.

The law: what is not listed here is not asked, and what is listed is; a test walks the table with
real requests. The operations are those that Kafka asks for, as are the errors of those who may not.
How an error is told is left to the handlers, how rules are read to the authorizer.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafscale.broker.security.denials import denial
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.api import Api
from kafscale.protocol.error_codes import ErrorCode

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID: Final = ResourceType.TRANSACTIONAL_ID


class Grant(NamedTuple):
    """An operation on a resource of some type."""

    resource_type: ResourceType
    operation: Operation

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.resource_type.name}"


class Need(NamedTuple):
    """What a client must be allowed to do, or else is told."""

    resource_type: ResourceType
    operation: Operation
    when: str = ""
    """For which requests, if not for all of them."""
    instead: Grant | None = None
    """Another permission that is as good."""
    error: ErrorCode | None = None
    """What is told, if not the error that goes with the type of the resource."""
    is_silent: bool = False
    """Whether nothing is told: what the client may not see is just not there."""

    @property
    def grant(self) -> Grant:
        return Grant(self.resource_type, self.operation)

    @property
    def grants(self) -> tuple[Grant, ...]:
        """All permissions of which one is enough."""
        return (self.grant,) if self.instead is None else (self.grant, self.instead)

    @property
    def code(self) -> ErrorCode:
        """The error of those who may not."""
        if self.is_silent:
            return ErrorCode.NONE
        return self.error or ErrorCode.of(denial(self.resource_type, "").code)


_CREATES_TOPICS: Final = Need(
    TOPIC,
    Operation.CREATE,
    when="a topic that does not exist is created by naming it",
    instead=Grant(CLUSTER, Operation.CREATE),
)
_READS_GROUP: Final = Need(GROUP, Operation.READ)
_TELLS_OF_CLUSTER: Final = Need(
    CLUSTER,
    Operation.DESCRIBE,
    when="the client asks what it may do to the cluster",
    is_silent=True,
)


def _on_configs(operation: Operation) -> tuple[Need, ...]:
    return (
        Need(TOPIC, operation, when="the configs are a topic's"),
        Need(GROUP, operation, when="the configs are a group's"),
        Need(CLUSTER, operation, when="the configs are those of brokers, loggers or metrics"),
    )


PERMISSIONS: Final[dict[str, tuple[Need, ...]]] = {
    "Produce": (
        Need(TOPIC, Operation.WRITE),
        _CREATES_TOPICS,
        Need(TRANSACTIONAL_ID, Operation.WRITE, when="the producer names a transactional id"),
    ),
    "Fetch": (
        Need(TOPIC, Operation.READ),
        Need(
            CLUSTER,
            Operation.CLUSTER_ACTION,
            when="the client says that it is a replica, which then reads all topics",
            error=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ),
    ),
    "ListOffsets": (Need(TOPIC, Operation.DESCRIBE),),
    "Metadata": (
        Need(
            TOPIC, Operation.DESCRIBE, when="topics are named; of all topics, others are not told"
        ),
        _CREATES_TOPICS,
        _TELLS_OF_CLUSTER,
    ),
    "OffsetCommit": (_READS_GROUP, Need(TOPIC, Operation.READ)),
    "OffsetFetch": (
        Need(GROUP, Operation.DESCRIBE),
        Need(
            TOPIC, Operation.DESCRIBE, when="topics are named; of all topics, others are not told"
        ),
    ),
    "FindCoordinator": (
        Need(GROUP, Operation.DESCRIBE, when="it is a group's"),
        Need(TRANSACTIONAL_ID, Operation.DESCRIBE, when="it is a transactional producer's"),
    ),
    "JoinGroup": (_READS_GROUP,),
    "Heartbeat": (_READS_GROUP,),
    "LeaveGroup": (_READS_GROUP,),
    "SyncGroup": (_READS_GROUP,),
    "DescribeGroups": (Need(GROUP, Operation.DESCRIBE),),
    "ListGroups": (
        Need(GROUP, Operation.DESCRIBE, instead=Grant(CLUSTER, Operation.DESCRIBE), is_silent=True),
    ),
    "SaslHandshake": (),
    "ApiVersions": (),
    "CreateTopics": (
        Need(TOPIC, Operation.CREATE, instead=Grant(CLUSTER, Operation.CREATE)),
        Need(
            TOPIC,
            Operation.DESCRIBE_CONFIGS,
            when="the answer tells the new topic's configs, or else why it does not (v5+)",
        ),
    ),
    "DeleteTopics": (
        Need(TOPIC, Operation.DELETE, instead=Grant(CLUSTER, Operation.DELETE)),
        Need(
            TOPIC,
            Operation.DESCRIBE,
            when="a topic is named by its name, whether it exists or not",
            instead=Grant(CLUSTER, Operation.DELETE),
        ),
    ),
    "DeleteRecords": (Need(TOPIC, Operation.DELETE),),
    "InitProducerId": (
        Need(TRANSACTIONAL_ID, Operation.WRITE, when="the producer names a transactional id"),
        Need(
            CLUSTER,
            Operation.IDEMPOTENT_WRITE,
            when="it does not",
            instead=Grant(TOPIC, Operation.WRITE),
        ),
    ),
    "OffsetForLeaderEpoch": (
        Need(TOPIC, Operation.DESCRIBE, instead=Grant(CLUSTER, Operation.CLUSTER_ACTION)),
    ),
    "DescribeAcls": (Need(CLUSTER, Operation.DESCRIBE),),
    "CreateAcls": (Need(CLUSTER, Operation.ALTER),),
    "DeleteAcls": (Need(CLUSTER, Operation.ALTER),),
    "DescribeConfigs": _on_configs(Operation.DESCRIBE_CONFIGS),
    "AlterConfigs": _on_configs(Operation.ALTER_CONFIGS),
    "DescribeLogDirs": (Need(CLUSTER, Operation.DESCRIBE),),
    "SaslAuthenticate": (),
    "CreatePartitions": (Need(TOPIC, Operation.ALTER),),
    "DeleteGroups": (Need(GROUP, Operation.DELETE),),
    "ElectLeaders": (Need(CLUSTER, Operation.ALTER),),
    "IncrementalAlterConfigs": _on_configs(Operation.ALTER_CONFIGS),
    "ListPartitionReassignments": (Need(CLUSTER, Operation.DESCRIBE),),
    "OffsetDelete": (Need(GROUP, Operation.DELETE), Need(TOPIC, Operation.READ)),
    "DescribeClientQuotas": (Need(CLUSTER, Operation.DESCRIBE_CONFIGS),),
    "AlterClientQuotas": (Need(CLUSTER, Operation.ALTER_CONFIGS),),
    "DescribeUserScramCredentials": (Need(CLUSTER, Operation.DESCRIBE),),
    "AlterUserScramCredentials": (Need(CLUSTER, Operation.ALTER),),
    "DescribeCluster": (_TELLS_OF_CLUSTER,),
    "DescribeProducers": (Need(TOPIC, Operation.READ),),
    "ConsumerGroupHeartbeat": (
        _READS_GROUP,
        Need(TOPIC, Operation.DESCRIBE, when="the member subscribes to topics"),
    ),
    "ConsumerGroupDescribe": (
        Need(GROUP, Operation.DESCRIBE),
        Need(
            TOPIC, Operation.DESCRIBE, when="members of the group are assigned topics: all of them"
        ),
    ),
    "ListConfigResources": (Need(CLUSTER, Operation.DESCRIBE_CONFIGS),),
    "DescribeTopicPartitions": (
        Need(
            TOPIC, Operation.DESCRIBE, when="topics are named; of all topics, others are not told"
        ),
    ),
}
"""What each API may ask for, by its name; an API without needs has an empty entry."""

TELLERS: Final[dict[str, frozenset[ResourceType]]] = {
    "Metadata": frozenset({TOPIC, CLUSTER}),
    "DescribeGroups": frozenset({GROUP}),
    "DescribeCluster": frozenset({CLUSTER}),
    "ConsumerGroupDescribe": frozenset({GROUP}),
    "DescribeTopicPartitions": frozenset({TOPIC}),
}
"""The APIs that tell clients what they may do to a resource (KIP-430), for which they look at every
operation that there is for its type. Nothing is refused for that."""

_LISTED: Final = frozenset(
    (api, *grant) for api, needs in PERMISSIONS.items() for need in needs for grant in need.grants
)

_HEAD: Final = """\
# Permissions

What a client has to be allowed for each API, where `authorization.enabled` is true: see
[security.md](security.md). This page is written by `make docs` from the table that the broker goes
by. READ, WRITE, DELETE and ALTER bring DESCRIBE along, ALTER_CONFIGS brings DESCRIBE_CONFIGS. Where
a thing is *left out*, the answer is as if it did not exist. What clients ask about their own rights
(KIP-430) is always answered.

| API | operation | on | needed when | otherwise |
|---|---|---|---|---|
"""


def is_listed(api: Api[Any, Any], operation: Operation, resource_type: ResourceType) -> bool:
    """Whether requests of an API may ask whether this is allowed."""
    if (api.name, resource_type, operation) in _LISTED:
        return True
    return resource_type in TELLERS.get(api.name, ())


def page() -> str:
    """The table, as docs/permissions.md shows it."""
    return _HEAD + "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    for api, needs in PERMISSIONS.items():
        if not needs:
            yield f"| {api} | none | | | |"
        for need in needs:
            instead = f", or {need.instead}" if need.instead else ""
            otherwise = "left out" if need.is_silent else need.code.name
            yield (
                f"| {api} | {need.operation.name} | {need.resource_type.name}{instead} |"
                f" {need.when or 'always'} | {otherwise} |"
            )
