"""The table of all APIs whose messages can be encoded and decoded, by key.

`kafscale protocol list` and docs/protocol.md are generated from it. A broker advertises the APIs
that it has handlers for, which it passes to `api_versions_response`.
"""

from collections.abc import Iterable
from typing import Any

from kafscale.protocol.api import Api
from kafscale.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN
from kafscale.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from kafscale.protocol.messages.alter_client_quotas import ALTER_CLIENT_QUOTAS
from kafscale.protocol.messages.alter_configs import ALTER_CONFIGS
from kafscale.protocol.messages.alter_partition_reassignments import ALTER_PARTITION_REASSIGNMENTS
from kafscale.protocol.messages.alter_replica_log_dirs import ALTER_REPLICA_LOG_DIRS
from kafscale.protocol.messages.alter_user_scram_credentials import ALTER_USER_SCRAM_CREDENTIALS
from kafscale.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionRange,
    ApiVersionsResponse,
)
from kafscale.protocol.messages.consumer_group_describe import CONSUMER_GROUP_DESCRIBE
from kafscale.protocol.messages.consumer_group_heartbeat import CONSUMER_GROUP_HEARTBEAT
from kafscale.protocol.messages.create_acls import CREATE_ACLS
from kafscale.protocol.messages.create_delegation_token import CREATE_DELEGATION_TOKEN
from kafscale.protocol.messages.create_partitions import CREATE_PARTITIONS
from kafscale.protocol.messages.create_topics import CREATE_TOPICS
from kafscale.protocol.messages.delete_acls import DELETE_ACLS
from kafscale.protocol.messages.delete_groups import DELETE_GROUPS
from kafscale.protocol.messages.delete_records import DELETE_RECORDS
from kafscale.protocol.messages.delete_topics import DELETE_TOPICS
from kafscale.protocol.messages.describe_acls import DESCRIBE_ACLS
from kafscale.protocol.messages.describe_client_quotas import DESCRIBE_CLIENT_QUOTAS
from kafscale.protocol.messages.describe_cluster import DESCRIBE_CLUSTER
from kafscale.protocol.messages.describe_configs import DESCRIBE_CONFIGS
from kafscale.protocol.messages.describe_delegation_token import DESCRIBE_DELEGATION_TOKEN
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS
from kafscale.protocol.messages.describe_log_dirs import DESCRIBE_LOG_DIRS
from kafscale.protocol.messages.describe_producers import DESCRIBE_PRODUCERS
from kafscale.protocol.messages.describe_quorum import DESCRIBE_QUORUM
from kafscale.protocol.messages.describe_topic_partitions import DESCRIBE_TOPIC_PARTITIONS
from kafscale.protocol.messages.describe_transactions import DESCRIBE_TRANSACTIONS
from kafscale.protocol.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
)
from kafscale.protocol.messages.elect_leaders import ELECT_LEADERS
from kafscale.protocol.messages.end_txn import END_TXN
from kafscale.protocol.messages.expire_delegation_token import EXPIRE_DELEGATION_TOKEN
from kafscale.protocol.messages.fetch import FETCH
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR
from kafscale.protocol.messages.get_telemetry_subscriptions import GET_TELEMETRY_SUBSCRIPTIONS
from kafscale.protocol.messages.heartbeat import HEARTBEAT
from kafscale.protocol.messages.incremental_alter_configs import INCREMENTAL_ALTER_CONFIGS
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID
from kafscale.protocol.messages.join_group import JOIN_GROUP
from kafscale.protocol.messages.leave_group import LEAVE_GROUP
from kafscale.protocol.messages.list_config_resources import LIST_CONFIG_RESOURCES
from kafscale.protocol.messages.list_groups import LIST_GROUPS
from kafscale.protocol.messages.list_offsets import LIST_OFFSETS
from kafscale.protocol.messages.list_partition_reassignments import LIST_PARTITION_REASSIGNMENTS
from kafscale.protocol.messages.list_transactions import LIST_TRANSACTIONS
from kafscale.protocol.messages.metadata import METADATA
from kafscale.protocol.messages.offset_commit import OFFSET_COMMIT
from kafscale.protocol.messages.offset_delete import OFFSET_DELETE
from kafscale.protocol.messages.offset_fetch import OFFSET_FETCH
from kafscale.protocol.messages.offset_for_leader_epoch import OFFSET_FOR_LEADER_EPOCH
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.protocol.messages.push_telemetry import PUSH_TELEMETRY
from kafscale.protocol.messages.renew_delegation_token import RENEW_DELEGATION_TOKEN
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE
from kafscale.protocol.messages.sync_group import SYNC_GROUP
from kafscale.protocol.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from kafscale.protocol.messages.update_features import UPDATE_FEATURES
from kafscale.protocol.messages.write_txn_markers import WRITE_TXN_MARKERS

APIS: tuple[Api[Any, Any], ...] = (
    PRODUCE,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    FIND_COORDINATOR,
    JOIN_GROUP,
    HEARTBEAT,
    LEAVE_GROUP,
    SYNC_GROUP,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    SASL_HANDSHAKE,
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DELETE_RECORDS,
    INIT_PRODUCER_ID,
    OFFSET_FOR_LEADER_EPOCH,
    ADD_PARTITIONS_TO_TXN,
    ADD_OFFSETS_TO_TXN,
    END_TXN,
    WRITE_TXN_MARKERS,
    TXN_OFFSET_COMMIT,
    DESCRIBE_ACLS,
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
    ALTER_REPLICA_LOG_DIRS,
    DESCRIBE_LOG_DIRS,
    SASL_AUTHENTICATE,
    CREATE_PARTITIONS,
    CREATE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
    DELETE_GROUPS,
    ELECT_LEADERS,
    INCREMENTAL_ALTER_CONFIGS,
    ALTER_PARTITION_REASSIGNMENTS,
    LIST_PARTITION_REASSIGNMENTS,
    OFFSET_DELETE,
    DESCRIBE_CLIENT_QUOTAS,
    ALTER_CLIENT_QUOTAS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    ALTER_USER_SCRAM_CREDENTIALS,
    DESCRIBE_QUORUM,
    UPDATE_FEATURES,
    DESCRIBE_CLUSTER,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
    CONSUMER_GROUP_HEARTBEAT,
    CONSUMER_GROUP_DESCRIBE,
    GET_TELEMETRY_SUBSCRIPTIONS,
    PUSH_TELEMETRY,
    LIST_CONFIG_RESOURCES,
    DESCRIBE_TOPIC_PARTITIONS,
)

BY_KEY = {api.key: api for api in APIS}
BY_NAME = {api.name: api for api in APIS}
assert len(BY_KEY) == len(BY_NAME) == len(APIS)


def api_versions_response(served: Iterable[Api[Any, Any]]) -> ApiVersionsResponse:
    """The ApiVersions response of a broker that serves these APIs in all their versions.

    A request in an unsupported version gets it too, in v0 and with UNSUPPORTED_VERSION as error
    code, so that the client can retry in a supported version (KIP-511).
    """
    ranges = [ApiVersionRange(api.key, api.version_min, api.version_max) for api in served]
    return ApiVersionsResponse(apis=sorted(ranges, key=lambda api: api.key))
