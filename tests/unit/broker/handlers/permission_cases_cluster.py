"""Cases for the permissions table: cluster, configs, ACLs, users and quotas."""

from typing import Any

from kafscale.broker.configs.resources import ResourceType as ConfigOwner
from kafscale.metadata.access.model import (
    Operation,
    PatternType,
    Permission,
    ResourceType,
    ScramMechanism,
)
from kafscale.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityPart,
    QuotaChange,
    QuotaToAlter,
)
from kafscale.protocol.messages.alter_configs import (
    ALTER_CONFIGS,
    AlterConfigsRequest,
    ResourceToAlter,
)
from kafscale.protocol.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    PartitionToReassign,
    TopicToReassign,
)
from kafscale.protocol.messages.alter_replica_log_dirs import (
    ALTER_REPLICA_LOG_DIRS,
    AlterReplicaLogDirsRequest,
    LogDirToAlter,
    TopicToMove,
)
from kafscale.protocol.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    CredentialToDelete,
)
from kafscale.protocol.messages.create_acls import CREATE_ACLS, AclToCreate, CreateAclsRequest
from kafscale.protocol.messages.delete_acls import DELETE_ACLS, AclFilter, DeleteAclsRequest
from kafscale.protocol.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from kafscale.protocol.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    DescribeClientQuotasRequest,
)
from kafscale.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from kafscale.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)
from kafscale.protocol.messages.describe_log_dirs import DESCRIBE_LOG_DIRS, DescribeLogDirsRequest
from kafscale.protocol.messages.describe_quorum import DESCRIBE_QUORUM, DescribeQuorumRequest
from kafscale.protocol.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
)
from kafscale.protocol.messages.elect_leaders import (
    ELECT_LEADERS,
    ElectLeadersRequest,
    TopicToElect,
)
from kafscale.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    IncrementalAlterConfigsRequest,
)
from kafscale.protocol.messages.incremental_alter_configs import ResourceToAlter as ResourceToChange
from kafscale.protocol.messages.list_config_resources import (
    LIST_CONFIG_RESOURCES,
    ListConfigResourcesRequest,
)
from kafscale.protocol.messages.list_partition_reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
    ListPartitionReassignmentsRequest,
)
from kafscale.protocol.messages.update_features import UPDATE_FEATURES, UpdateFeaturesRequest
from unit.broker.handlers.authorization_cases import (
    TOPIC,
    Case,
    first_partition,
    first_resource,
    top_level_error,
)
from unit.broker.handlers.group_members import GROUP
from unit.broker.in_memory_broker import NODE_ID

OWNERS = [
    (ResourceType.TOPIC, ConfigOwner.TOPIC, TOPIC),
    (ResourceType.GROUP, ConfigOwner.GROUP, GROUP),
    (ResourceType.CLUSTER, ConfigOwner.BROKER, str(NODE_ID)),
    (ResourceType.CLUSTER, ConfigOwner.BROKER_LOGGER, str(NODE_ID)),
    (ResourceType.CLUSTER, ConfigOwner.CLIENT_METRICS, "some"),
]


def config_cases() -> list[Case]:
    cases = []
    for guard, owner, name in OWNERS:
        described = ResourceToDescribe(owner, name, None)
        altered = ResourceToAlter(owner, name, [])
        changed = ResourceToChange(owner, name, [])
        requested = [
            (DESCRIBE_CONFIGS, Operation.DESCRIBE_CONFIGS, DescribeConfigsRequest([described])),
            (ALTER_CONFIGS, Operation.ALTER_CONFIGS, AlterConfigsRequest([altered])),
            (
                INCREMENTAL_ALTER_CONFIGS,
                Operation.ALTER_CONFIGS,
                IncrementalAlterConfigsRequest([changed]),
            ),
        ]
        cases += [
            Case(
                api,
                guard,
                operation,
                lambda *_, request=request: request,
                first_resource,
                label=owner.name.lower(),
            )
            for api, operation, request in requested
        ]
    return cases


def described_dirs(response: Any) -> int:
    """Before v3, the error is in the directory."""
    if response.log_dirs and response.log_dirs[0].error_code:
        assert response.log_dirs[0].path == "", "the store's address is not revealed"
        return response.log_dirs[0].error_code
    return response.error_code


def elected(response: Any) -> int:
    return response.error_code or first_partition(response)


def first_acl(response: Any) -> int:
    return response.acls[0].error_code


def first_filter(response: Any) -> int:
    return response.filters[0].error_code


def first_quota(response: Any) -> int:
    return response.quotas[0].error_code


def first_user(response: Any) -> int:
    return response.users[0].error_code


def new_rule(*_: object) -> CreateAclsRequest:
    return CreateAclsRequest(
        [
            AclToCreate(
                resource_type=ResourceType.TOPIC,
                resource_name=TOPIC,
                pattern_type=PatternType.LITERAL,
                principal="User:bob",
                host="*",
                operation=Operation.READ,
                permission_type=Permission.ALLOW,
            )
        ]
    )


def lapsed_rule(*_: object) -> DeleteAclsRequest:
    return DeleteAclsRequest(
        [
            AclFilter(
                resource_type=ResourceType.TOPIC,
                resource_name=TOPIC,
                pattern_type=PatternType.LITERAL,
                principal="User:bob",
                host="*",
                operation=Operation.READ,
                permission_type=Permission.ALLOW,
            )
        ]
    )


def all_rules(*_: object) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type=ResourceType.ANY,
        resource_name=None,
        pattern_type=PatternType.LITERAL,
        principal=None,
        host=None,
        operation=Operation.ANY,
        permission_type=Permission.ANY,
    )


def new_quota(*_: object) -> AlterClientQuotasRequest:
    change = QuotaChange(key="producer_byte_rate", value=1000.0)
    return AlterClientQuotasRequest([QuotaToAlter([EntityPart("user", "bob")], [change])])


def lapsed_user(*_: object) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest([CredentialToDelete("bob", ScramMechanism.SHA_256)])


CASES = [
    *config_cases(),
    Case(
        DESCRIBE_LOG_DIRS,
        ResourceType.CLUSTER,
        Operation.DESCRIBE,
        lambda *_: DescribeLogDirsRequest(topics=None),
        described_dirs,
    ),
    Case(
        ELECT_LEADERS,
        ResourceType.CLUSTER,
        Operation.ALTER,
        lambda *_: ElectLeadersRequest(topics=[TopicToElect(TOPIC, [0])]),
        elected,
    ),
    Case(
        ALTER_REPLICA_LOG_DIRS,
        ResourceType.CLUSTER,
        Operation.ALTER,
        lambda *_: AlterReplicaLogDirsRequest(
            [LogDirToAlter("/nowhere", [TopicToMove(TOPIC, [0])])]
        ),
        first_partition,
    ),
    Case(
        ALTER_PARTITION_REASSIGNMENTS,
        ResourceType.CLUSTER,
        Operation.ALTER,
        lambda *_: AlterPartitionReassignmentsRequest(
            topics=[TopicToReassign(TOPIC, [PartitionToReassign(0, [NODE_ID])])]
        ),
        top_level_error,
    ),
    Case(
        DESCRIBE_QUORUM,
        ResourceType.CLUSTER,
        Operation.DESCRIBE,
        lambda *_: DescribeQuorumRequest(),
        top_level_error,
    ),
    Case(
        LIST_PARTITION_REASSIGNMENTS,
        ResourceType.CLUSTER,
        Operation.DESCRIBE,
        lambda *_: ListPartitionReassignmentsRequest(),
        top_level_error,
    ),
    Case(
        DESCRIBE_CLUSTER,
        ResourceType.CLUSTER,
        Operation.DESCRIBE,
        lambda *_: DescribeClusterRequest(include_cluster_authorized_operations=True),
        lambda response: response.cluster_authorized_operations,
    ),
    Case(
        LIST_CONFIG_RESOURCES,
        ResourceType.CLUSTER,
        Operation.DESCRIBE_CONFIGS,
        lambda *_: ListConfigResourcesRequest(),
        top_level_error,
    ),
    Case(DESCRIBE_ACLS, ResourceType.CLUSTER, Operation.DESCRIBE, all_rules, top_level_error),
    Case(CREATE_ACLS, ResourceType.CLUSTER, Operation.ALTER, new_rule, first_acl),
    Case(DELETE_ACLS, ResourceType.CLUSTER, Operation.ALTER, lapsed_rule, first_filter),
    Case(
        DESCRIBE_CLIENT_QUOTAS,
        ResourceType.CLUSTER,
        Operation.DESCRIBE_CONFIGS,
        lambda *_: DescribeClientQuotasRequest(),
        top_level_error,
    ),
    Case(
        ALTER_CLIENT_QUOTAS, ResourceType.CLUSTER, Operation.ALTER_CONFIGS, new_quota, first_quota
    ),
    Case(
        DESCRIBE_USER_SCRAM_CREDENTIALS,
        ResourceType.CLUSTER,
        Operation.DESCRIBE,
        lambda *_: DescribeUserScramCredentialsRequest(users=None),
        top_level_error,
    ),
    Case(
        ALTER_USER_SCRAM_CREDENTIALS, ResourceType.CLUSTER, Operation.ALTER, lapsed_user, first_user
    ),
    Case(
        UPDATE_FEATURES,
        ResourceType.CLUSTER,
        Operation.ALTER,
        lambda *_: UpdateFeaturesRequest(),
        top_level_error,
    ),
]
