"""The operations that each API requires, by resource type, in one table.

Invariant: handlers ask for what is listed here and nothing else; a test sends real requests for
every row. Operations and errors are Kafka's. Handlers put the errors into responses; `Authorizer`
evaluates the ACLs.
"""

from typing import Any, Final, NamedTuple

from kafscale.errors import (
    AuthorizationError,
    ClusterAuthorizationError,
    GroupAuthorizationError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
)
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.api import Api
from kafscale.protocol.error_codes import ErrorCode

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID: Final = ResourceType.TRANSACTIONAL_ID


_ERRORS: Final[dict[ResourceType, type[AuthorizationError]]] = {
    ResourceType.TOPIC: TopicAuthorizationError,
    ResourceType.GROUP: GroupAuthorizationError,
    ResourceType.CLUSTER: ClusterAuthorizationError,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationError,
}


def authorization_error(resource_type: ResourceType, name: str) -> AuthorizationError:
    """The error for a resource; it does not say whether the resource exists."""
    type_name = resource_type.name.lower().replace("_", " ")
    return _ERRORS[resource_type](f"Not authorized to access {type_name} {name!r}.")


class Grant(NamedTuple):
    """An operation on resources of a type."""

    resource_type: ResourceType
    operation: Operation

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.resource_type.name}"


class Requirement(NamedTuple):
    """One required operation, and the error without it."""

    resource_type: ResourceType
    operation: Operation
    when: str = ""
    """The requests that require it; empty for all of them."""
    alternative: Grant | None = None
    """Another operation that is sufficient."""
    error: ErrorCode | None = None
    """The error, if it is not the one of the resource type."""
    is_filtered: bool = False
    """True if the response leaves the resource out instead of carrying an error."""

    @property
    def grant(self) -> Grant:
        return Grant(self.resource_type, self.operation)

    @property
    def grants(self) -> tuple[Grant, ...]:
        """The operations of which one is sufficient."""
        return (self.grant,) if self.alternative is None else (self.grant, self.alternative)

    @property
    def code(self) -> ErrorCode:
        """The error code without the operation."""
        if self.is_filtered:
            return ErrorCode.NONE
        return self.error or ErrorCode.of(authorization_error(self.resource_type, "").code)


_AUTO_CREATES_TOPICS: Final = Requirement(
    TOPIC,
    Operation.CREATE,
    when="a missing topic is auto-created",
    alternative=Grant(CLUSTER, Operation.CREATE),
)
_READS_GROUP: Final = Requirement(GROUP, Operation.READ)
_DESCRIBES_CLUSTER: Final = Requirement(
    CLUSTER,
    Operation.DESCRIBE,
    when="the client requests its authorized operations on the cluster",
    is_filtered=True,
)


def _for_configs(operation: Operation) -> tuple[Requirement, ...]:
    return (
        Requirement(TOPIC, operation, when="the resource is a topic"),
        Requirement(GROUP, operation, when="the resource is a group"),
        Requirement(
            CLUSTER, operation, when="the resource is a broker, a broker logger or client metrics"
        ),
    )


def _writes_transactionally(when: str = "") -> Requirement:
    return Requirement(TRANSACTIONAL_ID, Operation.WRITE, when=when)


PERMISSIONS: Final[dict[str, tuple[Requirement, ...]]] = {
    "Produce": (
        Requirement(TOPIC, Operation.WRITE),
        _AUTO_CREATES_TOPICS,
        Requirement(
            TRANSACTIONAL_ID, Operation.WRITE, when="the producer names a transactional id"
        ),
    ),
    "Fetch": (
        Requirement(TOPIC, Operation.READ),
        Requirement(
            CLUSTER,
            Operation.CLUSTER_ACTION,
            when="the client fetches as a replica; it may then read all topics",
            error=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ),
    ),
    "ListOffsets": (Requirement(TOPIC, Operation.DESCRIBE),),
    "Metadata": (
        Requirement(
            TOPIC,
            Operation.DESCRIBE,
            when="topics are named; a request for all topics leaves out others",
        ),
        _AUTO_CREATES_TOPICS,
        _DESCRIBES_CLUSTER,
    ),
    "OffsetCommit": (_READS_GROUP, Requirement(TOPIC, Operation.READ)),
    "OffsetFetch": (
        Requirement(GROUP, Operation.DESCRIBE),
        Requirement(
            TOPIC,
            Operation.DESCRIBE,
            when="topics are named; a request for all topics leaves out others",
        ),
    ),
    "FindCoordinator": (
        Requirement(GROUP, Operation.DESCRIBE, when="the coordinator of a group is requested"),
        Requirement(
            TRANSACTIONAL_ID,
            Operation.DESCRIBE,
            when="the coordinator of a transactional id is requested",
        ),
    ),
    "JoinGroup": (_READS_GROUP,),
    "Heartbeat": (_READS_GROUP,),
    "LeaveGroup": (_READS_GROUP,),
    "SyncGroup": (_READS_GROUP,),
    "DescribeGroups": (Requirement(GROUP, Operation.DESCRIBE),),
    "ListGroups": (
        Requirement(
            GROUP,
            Operation.DESCRIBE,
            alternative=Grant(CLUSTER, Operation.DESCRIBE),
            is_filtered=True,
        ),
    ),
    "SaslHandshake": (),
    "ApiVersions": (),
    "CreateTopics": (
        Requirement(TOPIC, Operation.CREATE, alternative=Grant(CLUSTER, Operation.CREATE)),
        Requirement(
            TOPIC,
            Operation.DESCRIBE_CONFIGS,
            when="the response carries the new topic's configs (v5+)",
        ),
    ),
    "DeleteTopics": (
        Requirement(TOPIC, Operation.DELETE, alternative=Grant(CLUSTER, Operation.DELETE)),
        Requirement(
            TOPIC,
            Operation.DESCRIBE,
            when="a topic is identified by name, whether it exists or not",
            alternative=Grant(CLUSTER, Operation.DELETE),
        ),
    ),
    "DeleteRecords": (Requirement(TOPIC, Operation.DELETE),),
    "InitProducerId": (
        Requirement(
            TRANSACTIONAL_ID, Operation.WRITE, when="the producer names a transactional id"
        ),
        Requirement(
            CLUSTER,
            Operation.IDEMPOTENT_WRITE,
            when="the producer names no transactional id",
            alternative=Grant(TOPIC, Operation.WRITE),
        ),
    ),
    "AddPartitionsToTxn": (
        _writes_transactionally("clients send it (v0-3)"),
        Requirement(TOPIC, Operation.WRITE, when="clients send it (v0-3)"),
        Requirement(CLUSTER, Operation.CLUSTER_ACTION, when="brokers send it (v4+)"),
    ),
    "AddOffsetsToTxn": (_writes_transactionally(), _READS_GROUP),
    "EndTxn": (_writes_transactionally(),),
    "WriteTxnMarkers": (
        Requirement(CLUSTER, Operation.ALTER, alternative=Grant(CLUSTER, Operation.CLUSTER_ACTION)),
    ),
    "TxnOffsetCommit": (
        _writes_transactionally(),
        _READS_GROUP,
        Requirement(TOPIC, Operation.READ),
    ),
    "OffsetForLeaderEpoch": (
        Requirement(
            TOPIC, Operation.DESCRIBE, alternative=Grant(CLUSTER, Operation.CLUSTER_ACTION)
        ),
    ),
    "DescribeAcls": (Requirement(CLUSTER, Operation.DESCRIBE),),
    "CreateAcls": (Requirement(CLUSTER, Operation.ALTER),),
    "DeleteAcls": (Requirement(CLUSTER, Operation.ALTER),),
    "DescribeConfigs": _for_configs(Operation.DESCRIBE_CONFIGS),
    "AlterConfigs": _for_configs(Operation.ALTER_CONFIGS),
    "AlterReplicaLogDirs": (Requirement(CLUSTER, Operation.ALTER),),
    "DescribeLogDirs": (Requirement(CLUSTER, Operation.DESCRIBE),),
    "SaslAuthenticate": (),
    "CreatePartitions": (Requirement(TOPIC, Operation.ALTER),),
    "CreateDelegationToken": (),
    "RenewDelegationToken": (),
    "ExpireDelegationToken": (),
    "DescribeDelegationToken": (),
    "DeleteGroups": (Requirement(GROUP, Operation.DELETE),),
    "ElectLeaders": (Requirement(CLUSTER, Operation.ALTER),),
    "IncrementalAlterConfigs": _for_configs(Operation.ALTER_CONFIGS),
    "AlterPartitionReassignments": (Requirement(CLUSTER, Operation.ALTER),),
    "ListPartitionReassignments": (Requirement(CLUSTER, Operation.DESCRIBE),),
    "OffsetDelete": (Requirement(GROUP, Operation.DELETE), Requirement(TOPIC, Operation.READ)),
    "DescribeClientQuotas": (Requirement(CLUSTER, Operation.DESCRIBE_CONFIGS),),
    "AlterClientQuotas": (Requirement(CLUSTER, Operation.ALTER_CONFIGS),),
    "DescribeUserScramCredentials": (Requirement(CLUSTER, Operation.DESCRIBE),),
    "AlterUserScramCredentials": (Requirement(CLUSTER, Operation.ALTER),),
    "DescribeQuorum": (Requirement(CLUSTER, Operation.DESCRIBE),),
    "UpdateFeatures": (Requirement(CLUSTER, Operation.ALTER),),
    "DescribeCluster": (_DESCRIBES_CLUSTER,),
    "DescribeProducers": (Requirement(TOPIC, Operation.READ),),
    "DescribeTransactions": (
        Requirement(TRANSACTIONAL_ID, Operation.DESCRIBE),
        Requirement(
            TOPIC, Operation.DESCRIBE, when="a topic is in the transaction", is_filtered=True
        ),
    ),
    "ListTransactions": (Requirement(TRANSACTIONAL_ID, Operation.DESCRIBE, is_filtered=True),),
    "ConsumerGroupHeartbeat": (
        _READS_GROUP,
        Requirement(TOPIC, Operation.DESCRIBE, when="the member subscribes to topics"),
    ),
    "ConsumerGroupDescribe": (
        Requirement(GROUP, Operation.DESCRIBE),
        Requirement(
            TOPIC,
            Operation.DESCRIBE,
            when="members of the group are assigned topics: for all of them",
        ),
    ),
    "GetTelemetrySubscriptions": (),
    "PushTelemetry": (),
    "ListConfigResources": (Requirement(CLUSTER, Operation.DESCRIBE_CONFIGS),),
    "DescribeTopicPartitions": (
        Requirement(
            TOPIC,
            Operation.DESCRIBE,
            when="topics are named; a request for all topics leaves out others",
        ),
    ),
}
"""The required operations by API name; an API that requires none has an empty entry."""

AUTHORIZED_OPERATIONS_APIS: Final[dict[str, frozenset[ResourceType]]] = {
    "Metadata": frozenset({TOPIC, CLUSTER}),
    "DescribeGroups": frozenset({GROUP}),
    "DescribeCluster": frozenset({CLUSTER}),
    "ConsumerGroupDescribe": frozenset({GROUP}),
    "DescribeTopicPartitions": frozenset({TOPIC}),
}
"""The APIs that return the authorized operations of a resource (KIP-430). They check every
operation of its type, and no request is denied for that."""

_LISTED: Final = frozenset(
    (api, *grant)
    for api, requirements in PERMISSIONS.items()
    for requirement in requirements
    for grant in requirement.grants
)


def is_listed(api: Api[Any, Any], operation: Operation, resource_type: ResourceType) -> bool:
    """Whether handlers of an API may ask for this operation."""
    if (api.name, resource_type, operation) in _LISTED:
        return True
    return resource_type in AUTHORIZED_OPERATIONS_APIS.get(api.name, ())
