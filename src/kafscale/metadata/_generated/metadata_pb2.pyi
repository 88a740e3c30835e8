from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TopicConfig(_message.Message):
    __slots__ = ("name", "partitions", "replication_factor", "retention_ms", "retention_bytes", "segment_bytes", "created_at", "config", "topic_id", "config_version", "namespace", "config_set", "id_in_keys", "emptied_ms", "earlier_without_id", "replicas", "schema_version")
    class ConfigEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ReplicasEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: ReplicaList
        def __init__(self, key: _Optional[int] = ..., value: _Optional[_Union[ReplicaList, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_BYTES_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIG_VERSION_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_SET_FIELD_NUMBER: _ClassVar[int]
    ID_IN_KEYS_FIELD_NUMBER: _ClassVar[int]
    EMPTIED_MS_FIELD_NUMBER: _ClassVar[int]
    EARLIER_WITHOUT_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    partitions: int
    replication_factor: int
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    created_at: str
    config: _containers.ScalarMap[str, str]
    topic_id: bytes
    config_version: int
    namespace: str
    config_set: _containers.RepeatedScalarFieldContainer[str]
    id_in_keys: bool
    emptied_ms: int
    earlier_without_id: bool
    replicas: _containers.MessageMap[int, ReplicaList]
    schema_version: int
    def __init__(self, name: _Optional[str] = ..., partitions: _Optional[int] = ..., replication_factor: _Optional[int] = ..., retention_ms: _Optional[int] = ..., retention_bytes: _Optional[int] = ..., segment_bytes: _Optional[int] = ..., created_at: _Optional[str] = ..., config: _Optional[_Mapping[str, str]] = ..., topic_id: _Optional[bytes] = ..., config_version: _Optional[int] = ..., namespace: _Optional[str] = ..., config_set: _Optional[_Iterable[str]] = ..., id_in_keys: _Optional[bool] = ..., emptied_ms: _Optional[int] = ..., earlier_without_id: _Optional[bool] = ..., replicas: _Optional[_Mapping[int, ReplicaList]] = ..., schema_version: _Optional[int] = ...) -> None: ...

class ReplicaList(_message.Message):
    __slots__ = ("broker_ids",)
    BROKER_IDS_FIELD_NUMBER: _ClassVar[int]
    broker_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, broker_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class PartitionState(_message.Message):
    __slots__ = ("topic", "partition", "leader_broker", "leader_epoch", "log_start_offset", "log_end_offset", "high_watermark", "active_segment", "segments", "segment_count", "size_bytes", "topic_id", "rolled_offset", "schema_version")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_BROKER_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_SEGMENT_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    ROLLED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    leader_broker: str
    leader_epoch: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    active_segment: str
    segments: _containers.RepeatedCompositeFieldContainer[SegmentInfo]
    segment_count: int
    size_bytes: int
    topic_id: bytes
    rolled_offset: int
    schema_version: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., leader_broker: _Optional[str] = ..., leader_epoch: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., log_end_offset: _Optional[int] = ..., high_watermark: _Optional[int] = ..., active_segment: _Optional[str] = ..., segments: _Optional[_Iterable[_Union[SegmentInfo, _Mapping]]] = ..., segment_count: _Optional[int] = ..., size_bytes: _Optional[int] = ..., topic_id: _Optional[bytes] = ..., rolled_offset: _Optional[int] = ..., schema_version: _Optional[int] = ...) -> None: ...

class SegmentInfo(_message.Message):
    __slots__ = ("base_offset", "size_bytes", "created_at", "last_offset", "max_timestamp_ms")
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MAX_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    base_offset: int
    size_bytes: int
    created_at: str
    last_offset: int
    max_timestamp_ms: int
    def __init__(self, base_offset: _Optional[int] = ..., size_bytes: _Optional[int] = ..., created_at: _Optional[str] = ..., last_offset: _Optional[int] = ..., max_timestamp_ms: _Optional[int] = ...) -> None: ...

class ConsumerGroup(_message.Message):
    __slots__ = ("group_id", "state", "protocol_type", "protocol", "leader", "generation_id", "members", "rebalance_timeout_ms", "kind", "state_since", "assignment_epoch", "schema_version")
    class MembersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: GroupMember
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[GroupMember, _Mapping]] = ...) -> None: ...
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_TYPE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    GENERATION_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    REBALANCE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_SINCE_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    state: str
    protocol_type: str
    protocol: str
    leader: str
    generation_id: int
    members: _containers.MessageMap[str, GroupMember]
    rebalance_timeout_ms: int
    kind: str
    state_since: str
    assignment_epoch: int
    schema_version: int
    def __init__(self, group_id: _Optional[str] = ..., state: _Optional[str] = ..., protocol_type: _Optional[str] = ..., protocol: _Optional[str] = ..., leader: _Optional[str] = ..., generation_id: _Optional[int] = ..., members: _Optional[_Mapping[str, GroupMember]] = ..., rebalance_timeout_ms: _Optional[int] = ..., kind: _Optional[str] = ..., state_since: _Optional[str] = ..., assignment_epoch: _Optional[int] = ..., schema_version: _Optional[int] = ...) -> None: ...

class GroupMember(_message.Message):
    __slots__ = ("client_id", "client_host", "heartbeat_at", "assignments", "subscriptions", "session_timeout_ms", "instance_id", "rebalance_timeout_ms", "rack_id", "protocols", "assignment", "speaks_consumer_protocol", "member_epoch", "previous_member_epoch", "subscribed_names", "subscribed_regex", "server_assignor", "assigned", "revoking", "target")
    class Protocol(_message.Message):
        __slots__ = ("name", "metadata")
        NAME_FIELD_NUMBER: _ClassVar[int]
        METADATA_FIELD_NUMBER: _ClassVar[int]
        name: str
        metadata: bytes
        def __init__(self, name: _Optional[str] = ..., metadata: _Optional[bytes] = ...) -> None: ...
    class Partitions(_message.Message):
        __slots__ = ("topic_id", "partitions")
        TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
        PARTITIONS_FIELD_NUMBER: _ClassVar[int]
        topic_id: bytes
        partitions: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[int]] = ...) -> None: ...
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_HOST_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_AT_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    SESSION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    REBALANCE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    RACK_ID_FIELD_NUMBER: _ClassVar[int]
    PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    SPEAKS_CONSUMER_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBED_NAMES_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBED_REGEX_FIELD_NUMBER: _ClassVar[int]
    SERVER_ASSIGNOR_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    REVOKING_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    client_id: str
    client_host: str
    heartbeat_at: str
    assignments: _containers.RepeatedCompositeFieldContainer[Assignment]
    subscriptions: _containers.RepeatedScalarFieldContainer[str]
    session_timeout_ms: int
    instance_id: str
    rebalance_timeout_ms: int
    rack_id: str
    protocols: _containers.RepeatedCompositeFieldContainer[GroupMember.Protocol]
    assignment: bytes
    speaks_consumer_protocol: bool
    member_epoch: int
    previous_member_epoch: int
    subscribed_names: _containers.RepeatedScalarFieldContainer[str]
    subscribed_regex: str
    server_assignor: str
    assigned: _containers.RepeatedCompositeFieldContainer[GroupMember.Partitions]
    revoking: _containers.RepeatedCompositeFieldContainer[GroupMember.Partitions]
    target: _containers.RepeatedCompositeFieldContainer[GroupMember.Partitions]
    def __init__(self, client_id: _Optional[str] = ..., client_host: _Optional[str] = ..., heartbeat_at: _Optional[str] = ..., assignments: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., subscriptions: _Optional[_Iterable[str]] = ..., session_timeout_ms: _Optional[int] = ..., instance_id: _Optional[str] = ..., rebalance_timeout_ms: _Optional[int] = ..., rack_id: _Optional[str] = ..., protocols: _Optional[_Iterable[_Union[GroupMember.Protocol, _Mapping]]] = ..., assignment: _Optional[bytes] = ..., speaks_consumer_protocol: _Optional[bool] = ..., member_epoch: _Optional[int] = ..., previous_member_epoch: _Optional[int] = ..., subscribed_names: _Optional[_Iterable[str]] = ..., subscribed_regex: _Optional[str] = ..., server_assignor: _Optional[str] = ..., assigned: _Optional[_Iterable[_Union[GroupMember.Partitions, _Mapping]]] = ..., revoking: _Optional[_Iterable[_Union[GroupMember.Partitions, _Mapping]]] = ..., target: _Optional[_Iterable[_Union[GroupMember.Partitions, _Mapping]]] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("topic", "partitions")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ...) -> None: ...

class CommittedOffset(_message.Message):
    __slots__ = ("offset", "metadata", "committed_at", "leader_epoch", "expires_at", "topic_id", "commit_number", "schema_version")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    COMMIT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    offset: int
    metadata: str
    committed_at: str
    leader_epoch: int
    expires_at: str
    topic_id: bytes
    commit_number: int
    schema_version: int
    def __init__(self, offset: _Optional[int] = ..., metadata: _Optional[str] = ..., committed_at: _Optional[str] = ..., leader_epoch: _Optional[int] = ..., expires_at: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., commit_number: _Optional[int] = ..., schema_version: _Optional[int] = ...) -> None: ...

class PendingOffsets(_message.Message):
    __slots__ = ("producer_id", "producer_epoch", "offsets", "committed", "started_at", "schema_version")
    class Offset(_message.Message):
        __slots__ = ("topic", "partition", "offset")
        TOPIC_FIELD_NUMBER: _ClassVar[int]
        PARTITION_FIELD_NUMBER: _ClassVar[int]
        OFFSET_FIELD_NUMBER: _ClassVar[int]
        topic: str
        partition: int
        offset: CommittedOffset
        def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[_Union[CommittedOffset, _Mapping]] = ...) -> None: ...
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    offsets: _containers.RepeatedCompositeFieldContainer[PendingOffsets.Offset]
    committed: bool
    started_at: str
    schema_version: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., offsets: _Optional[_Iterable[_Union[PendingOffsets.Offset, _Mapping]]] = ..., committed: _Optional[bool] = ..., started_at: _Optional[str] = ..., schema_version: _Optional[int] = ...) -> None: ...

class TransactionalId(_message.Message):
    __slots__ = ("transactional_id", "producer_id", "previous_producer_id", "next_producer_id", "producer_epoch", "last_producer_epoch", "timeout_ms", "state", "partitions", "started_at", "updated_at", "transaction_version", "schema_version")
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    NEXT_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_VERSION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    state: str
    partitions: _containers.RepeatedCompositeFieldContainer[Assignment]
    started_at: str
    updated_at: str
    transaction_version: int
    schema_version: int
    def __init__(self, transactional_id: _Optional[str] = ..., producer_id: _Optional[int] = ..., previous_producer_id: _Optional[int] = ..., next_producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., last_producer_epoch: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., state: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., started_at: _Optional[str] = ..., updated_at: _Optional[str] = ..., transaction_version: _Optional[int] = ..., schema_version: _Optional[int] = ...) -> None: ...

class BrokerRegistration(_message.Message):
    __slots__ = ("broker_id", "host", "port", "rack", "started_at", "last_heartbeat", "version", "epoch", "control_host", "control_port", "draining", "endpoints", "location", "schema_version")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CONTROL_HOST_FIELD_NUMBER: _ClassVar[int]
    CONTROL_PORT_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    broker_id: str
    host: str
    port: int
    rack: str
    started_at: str
    last_heartbeat: str
    version: str
    epoch: int
    control_host: str
    control_port: int
    draining: bool
    endpoints: _containers.RepeatedCompositeFieldContainer[ListenerEndpoint]
    location: str
    schema_version: int
    def __init__(self, broker_id: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., rack: _Optional[str] = ..., started_at: _Optional[str] = ..., last_heartbeat: _Optional[str] = ..., version: _Optional[str] = ..., epoch: _Optional[int] = ..., control_host: _Optional[str] = ..., control_port: _Optional[int] = ..., draining: _Optional[bool] = ..., endpoints: _Optional[_Iterable[_Union[ListenerEndpoint, _Mapping]]] = ..., location: _Optional[str] = ..., schema_version: _Optional[int] = ...) -> None: ...

class ListenerEndpoint(_message.Message):
    __slots__ = ("name", "host", "port", "security_protocol")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    SECURITY_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    name: str
    host: str
    port: int
    security_protocol: str
    def __init__(self, name: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., security_protocol: _Optional[str] = ...) -> None: ...

class PartitionAssignment(_message.Message):
    __slots__ = ("broker_id", "epoch", "assigned_at", "broker_epoch", "clean", "moving_to", "topic_id", "end_offset", "lost_broker_id", "lost_broker_epoch", "schema_version")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_AT_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    CLEAN_FIELD_NUMBER: _ClassVar[int]
    MOVING_TO_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOST_BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    LOST_BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    broker_id: str
    epoch: int
    assigned_at: str
    broker_epoch: int
    clean: bool
    moving_to: str
    topic_id: bytes
    end_offset: int
    lost_broker_id: str
    lost_broker_epoch: int
    schema_version: int
    def __init__(self, broker_id: _Optional[str] = ..., epoch: _Optional[int] = ..., assigned_at: _Optional[str] = ..., broker_epoch: _Optional[int] = ..., clean: _Optional[bool] = ..., moving_to: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., end_offset: _Optional[int] = ..., lost_broker_id: _Optional[str] = ..., lost_broker_epoch: _Optional[int] = ..., schema_version: _Optional[int] = ...) -> None: ...

class AccessRule(_message.Message):
    __slots__ = ("resource_type", "pattern_type", "resource_name", "principal", "host", "operation", "permission", "schema_version")
    RESOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    PATTERN_TYPE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_NAME_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    resource_type: int
    pattern_type: int
    resource_name: str
    principal: str
    host: str
    operation: int
    permission: int
    schema_version: int
    def __init__(self, resource_type: _Optional[int] = ..., pattern_type: _Optional[int] = ..., resource_name: _Optional[str] = ..., principal: _Optional[str] = ..., host: _Optional[str] = ..., operation: _Optional[int] = ..., permission: _Optional[int] = ..., schema_version: _Optional[int] = ...) -> None: ...

class ScramCredential(_message.Message):
    __slots__ = ("user", "mechanism", "salt", "iterations", "stored_key", "server_key", "schema_version")
    USER_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    STORED_KEY_FIELD_NUMBER: _ClassVar[int]
    SERVER_KEY_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    user: str
    mechanism: int
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes
    schema_version: int
    def __init__(self, user: _Optional[str] = ..., mechanism: _Optional[int] = ..., salt: _Optional[bytes] = ..., iterations: _Optional[int] = ..., stored_key: _Optional[bytes] = ..., server_key: _Optional[bytes] = ..., schema_version: _Optional[int] = ...) -> None: ...

class Quota(_message.Message):
    __slots__ = ("user", "client_id", "ip", "limits", "schema_version")
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    USER_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    IP_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    user: str
    client_id: str
    ip: str
    limits: _containers.ScalarMap[str, float]
    schema_version: int
    def __init__(self, user: _Optional[str] = ..., client_id: _Optional[str] = ..., ip: _Optional[str] = ..., limits: _Optional[_Mapping[str, float]] = ..., schema_version: _Optional[int] = ...) -> None: ...

class DynamicConfigs(_message.Message):
    __slots__ = ("configs", "schema_version")
    class ConfigsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    configs: _containers.ScalarMap[str, str]
    schema_version: int
    def __init__(self, configs: _Optional[_Mapping[str, str]] = ..., schema_version: _Optional[int] = ...) -> None: ...
