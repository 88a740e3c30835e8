"""Every API that the broker serves, by key; `dispatcher` serves ApiVersions."""

from kafscale.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    expire_delegation_token,
    fetch,
    find_coordinator,
    get_telemetry_subscriptions,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    push_telemetry,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    update_features,
    write_txn_markers,
)
from kafscale.broker.requests.route import Route, route
from kafscale.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN
from kafscale.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from kafscale.protocol.messages.alter_client_quotas import ALTER_CLIENT_QUOTAS
from kafscale.protocol.messages.alter_configs import ALTER_CONFIGS
from kafscale.protocol.messages.alter_partition_reassignments import ALTER_PARTITION_REASSIGNMENTS
from kafscale.protocol.messages.alter_replica_log_dirs import ALTER_REPLICA_LOG_DIRS
from kafscale.protocol.messages.alter_user_scram_credentials import ALTER_USER_SCRAM_CREDENTIALS
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

ROUTES: tuple[Route, ...] = (
    route(PRODUCE, produce.handle, produce.error_response, has_own_timeout=True, is_pipelined=True),
    route(
        FETCH,
        fetch.handle,
        fetch.error_response,
        has_own_timeout=True,
        cancel_on_disconnect=True,
        is_pipelined=True,
    ),
    route(
        LIST_OFFSETS,
        list_offsets.handle,
        list_offsets.error_response,
        cancel_on_disconnect=True,
        is_pipelined=True,
    ),
    route(
        METADATA,
        metadata.handle,
        metadata.error_response,
        results="topics",
        cancel_on_disconnect=True,
        # It may wait for a topic to be created, while produces to other topics go on.
        is_pipelined=True,
    ),
    route(OFFSET_COMMIT, offset_commit.handle, offset_commit.error_response, is_pipelined=True),
    route(
        OFFSET_FETCH, offset_fetch.handle, offset_fetch.error_response, cancel_on_disconnect=True
    ),
    route(
        FIND_COORDINATOR,
        find_coordinator.handle,
        find_coordinator.error_response,
        results="coordinators",
        cancel_on_disconnect=True,
    ),
    route(
        JOIN_GROUP,
        join_group.handle,
        join_group.error_response,
        has_own_timeout=True,
        is_pipelined=True,
    ),
    route(HEARTBEAT, heartbeat.handle, is_pipelined=True),
    route(LEAVE_GROUP, leave_group.handle, leave_group.error_response, is_pipelined=True),
    route(SYNC_GROUP, sync_group.handle, has_own_timeout=True, is_pipelined=True),
    route(
        DESCRIBE_GROUPS,
        describe_groups.handle,
        describe_groups.error_response,
        results="groups",
        cancel_on_disconnect=True,
    ),
    route(LIST_GROUPS, list_groups.handle),
    route(SASL_HANDSHAKE, sasl_handshake.handle, sasl_handshake.error_response),
    route(CREATE_TOPICS, create_topics.handle, create_topics.error_response),
    route(DELETE_TOPICS, delete_topics.handle, delete_topics.error_response),
    route(DELETE_RECORDS, delete_records.handle, delete_records.error_response, results="topics"),
    route(INIT_PRODUCER_ID, init_producer_id.handle, init_producer_id.error_response),
    route(
        OFFSET_FOR_LEADER_EPOCH,
        offset_for_leader_epoch.handle,
        offset_for_leader_epoch.error_response,
        results="topics",
        cancel_on_disconnect=True,
    ),
    route(
        ADD_PARTITIONS_TO_TXN, add_partitions_to_txn.handle, add_partitions_to_txn.error_response
    ),
    route(ADD_OFFSETS_TO_TXN, add_offsets_to_txn.handle, add_offsets_to_txn.error_response),
    route(END_TXN, end_txn.handle, end_txn.error_response),
    route(WRITE_TXN_MARKERS, write_txn_markers.handle, write_txn_markers.error_response),
    route(TXN_OFFSET_COMMIT, txn_offset_commit.handle, txn_offset_commit.error_response),
    route(DESCRIBE_ACLS, describe_acls.handle),
    route(CREATE_ACLS, create_acls.handle, create_acls.error_response),
    route(DELETE_ACLS, delete_acls.handle, delete_acls.error_response),
    route(
        DESCRIBE_CONFIGS,
        describe_configs.handle,
        describe_configs.error_response,
        results="resources",
        cancel_on_disconnect=True,
    ),
    route(ALTER_CONFIGS, alter_configs.handle, alter_configs.error_response, results="resources"),
    route(
        ALTER_REPLICA_LOG_DIRS, alter_replica_log_dirs.handle, alter_replica_log_dirs.error_response
    ),
    route(DESCRIBE_LOG_DIRS, describe_log_dirs.handle, describe_log_dirs.error_response),
    route(SASL_AUTHENTICATE, sasl_authenticate.handle, has_own_timeout=True),
    route(CREATE_PARTITIONS, create_partitions.handle, create_partitions.error_response),
    route(
        CREATE_DELEGATION_TOKEN,
        create_delegation_token.handle,
        create_delegation_token.error_response,
    ),
    route(
        RENEW_DELEGATION_TOKEN, renew_delegation_token.handle, renew_delegation_token.error_response
    ),
    route(
        EXPIRE_DELEGATION_TOKEN,
        expire_delegation_token.handle,
        expire_delegation_token.error_response,
    ),
    route(DESCRIBE_DELEGATION_TOKEN, describe_delegation_token.handle),
    route(DELETE_GROUPS, delete_groups.handle, delete_groups.error_response, results="groups"),
    route(
        ELECT_LEADERS,
        elect_leaders.handle,
        elect_leaders.error_response,
        has_own_timeout=True,
        cancel_on_disconnect=True,
    ),
    route(
        INCREMENTAL_ALTER_CONFIGS,
        incremental_alter_configs.handle,
        incremental_alter_configs.error_response,
        results="resources",
    ),
    route(
        ALTER_PARTITION_REASSIGNMENTS,
        alter_partition_reassignments.handle,
        alter_partition_reassignments.error_response,
        results="topics",
    ),
    route(
        LIST_PARTITION_REASSIGNMENTS,
        list_partition_reassignments.handle,
        results="topics",
        cancel_on_disconnect=True,
    ),
    route(OFFSET_DELETE, offset_delete.handle),
    route(
        DESCRIBE_CLIENT_QUOTAS, describe_client_quotas.handle, describe_client_quotas.error_response
    ),
    route(ALTER_CLIENT_QUOTAS, alter_client_quotas.handle, alter_client_quotas.error_response),
    route(DESCRIBE_USER_SCRAM_CREDENTIALS, describe_user_scram_credentials.handle),
    route(
        ALTER_USER_SCRAM_CREDENTIALS,
        alter_user_scram_credentials.handle,
        alter_user_scram_credentials.error_response,
    ),
    route(DESCRIBE_QUORUM, describe_quorum.handle, describe_quorum.error_response),
    route(UPDATE_FEATURES, update_features.handle),
    route(DESCRIBE_CLUSTER, describe_cluster.handle),
    route(
        DESCRIBE_PRODUCERS,
        describe_producers.handle,
        describe_producers.error_response,
        cancel_on_disconnect=True,
    ),
    route(
        DESCRIBE_TRANSACTIONS,
        describe_transactions.handle,
        describe_transactions.error_response,
        cancel_on_disconnect=True,
    ),
    route(LIST_TRANSACTIONS, list_transactions.handle),
    route(
        CONSUMER_GROUP_HEARTBEAT,
        consumer_group_heartbeat.handle,
        consumer_group_heartbeat.error_response,
        is_pipelined=True,
    ),
    route(
        CONSUMER_GROUP_DESCRIBE,
        consumer_group_describe.handle,
        consumer_group_describe.error_response,
        results="groups",
        cancel_on_disconnect=True,
    ),
    route(GET_TELEMETRY_SUBSCRIPTIONS, get_telemetry_subscriptions.handle),
    route(PUSH_TELEMETRY, push_telemetry.handle, is_pipelined=True),
    route(LIST_CONFIG_RESOURCES, list_config_resources.handle),
    route(
        DESCRIBE_TOPIC_PARTITIONS,
        describe_topic_partitions.handle,
        describe_topic_partitions.error_response,
    ),
)
