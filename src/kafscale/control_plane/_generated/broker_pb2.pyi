from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PartitionRef(_message.Message):
    __slots__ = ("topic", "partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...

class BrokerStatusRequest(_message.Message):
    __slots__ = ("without_partitions", "with_samples")
    WITHOUT_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    WITH_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    without_partitions: bool
    with_samples: bool
    def __init__(self, without_partitions: _Optional[bool] = ..., with_samples: _Optional[bool] = ...) -> None: ...

class BrokerStatusResponse(_message.Message):
    __slots__ = ("broker_id", "version", "ready", "partitions", "epoch", "is_controller", "controller_id", "cluster_id", "draining", "brokers", "shards", "store_health", "problems", "uptime_ms", "samples", "node_id", "metrics_host", "metrics_port", "idle_seconds")
    class ProblemsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    IS_CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    STORE_HEALTH_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    UPTIME_MS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    METRICS_HOST_FIELD_NUMBER: _ClassVar[int]
    METRICS_PORT_FIELD_NUMBER: _ClassVar[int]
    IDLE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    broker_id: str
    version: str
    ready: bool
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionStatus]
    epoch: int
    is_controller: bool
    controller_id: str
    cluster_id: str
    draining: bool
    brokers: _containers.RepeatedCompositeFieldContainer[BrokerSummary]
    shards: _containers.RepeatedScalarFieldContainer[int]
    store_health: str
    problems: _containers.ScalarMap[str, str]
    uptime_ms: int
    samples: _containers.RepeatedCompositeFieldContainer[MetricsSample]
    node_id: int
    metrics_host: str
    metrics_port: int
    idle_seconds: float
    def __init__(self, broker_id: _Optional[str] = ..., version: _Optional[str] = ..., ready: _Optional[bool] = ..., partitions: _Optional[_Iterable[_Union[PartitionStatus, _Mapping]]] = ..., epoch: _Optional[int] = ..., is_controller: _Optional[bool] = ..., controller_id: _Optional[str] = ..., cluster_id: _Optional[str] = ..., draining: _Optional[bool] = ..., brokers: _Optional[_Iterable[_Union[BrokerSummary, _Mapping]]] = ..., shards: _Optional[_Iterable[int]] = ..., store_health: _Optional[str] = ..., problems: _Optional[_Mapping[str, str]] = ..., uptime_ms: _Optional[int] = ..., samples: _Optional[_Iterable[_Union[MetricsSample, _Mapping]]] = ..., node_id: _Optional[int] = ..., metrics_host: _Optional[str] = ..., metrics_port: _Optional[int] = ..., idle_seconds: _Optional[float] = ...) -> None: ...

class PartitionStatus(_message.Message):
    __slots__ = ("topic", "partition", "leader", "state", "log_start_offset", "log_end_offset", "high_watermark", "leader_epoch", "moving_to", "rolled_offset", "size_bytes")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    MOVING_TO_FIELD_NUMBER: _ClassVar[int]
    ROLLED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    leader: bool
    state: str
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    leader_epoch: int
    moving_to: str
    rolled_offset: int
    size_bytes: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., leader: _Optional[bool] = ..., state: _Optional[str] = ..., log_start_offset: _Optional[int] = ..., log_end_offset: _Optional[int] = ..., high_watermark: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., moving_to: _Optional[str] = ..., rolled_offset: _Optional[int] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class BrokerSummary(_message.Message):
    __slots__ = ("broker_id", "host", "port", "control_host", "control_port", "rack", "version", "epoch", "draining", "partition_count", "shard_count", "moving_count")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    CONTROL_HOST_FIELD_NUMBER: _ClassVar[int]
    CONTROL_PORT_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    SHARD_COUNT_FIELD_NUMBER: _ClassVar[int]
    MOVING_COUNT_FIELD_NUMBER: _ClassVar[int]
    broker_id: str
    host: str
    port: int
    control_host: str
    control_port: int
    rack: str
    version: str
    epoch: int
    draining: bool
    partition_count: int
    shard_count: int
    moving_count: int
    def __init__(self, broker_id: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., control_host: _Optional[str] = ..., control_port: _Optional[int] = ..., rack: _Optional[str] = ..., version: _Optional[str] = ..., epoch: _Optional[int] = ..., draining: _Optional[bool] = ..., partition_count: _Optional[int] = ..., shard_count: _Optional[int] = ..., moving_count: _Optional[int] = ...) -> None: ...

class DrainPartitionsRequest(_message.Message):
    __slots__ = ("partitions", "reason", "deadline_seconds")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionRef]
    reason: str
    deadline_seconds: int
    def __init__(self, partitions: _Optional[_Iterable[_Union[PartitionRef, _Mapping]]] = ..., reason: _Optional[str] = ..., deadline_seconds: _Optional[int] = ...) -> None: ...

class DrainPartitionsResponse(_message.Message):
    __slots__ = ("drained", "pending")
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    drained: _containers.RepeatedCompositeFieldContainer[PartitionRef]
    pending: _containers.RepeatedCompositeFieldContainer[PartitionRef]
    def __init__(self, drained: _Optional[_Iterable[_Union[PartitionRef, _Mapping]]] = ..., pending: _Optional[_Iterable[_Union[PartitionRef, _Mapping]]] = ...) -> None: ...

class TriggerFlushRequest(_message.Message):
    __slots__ = ("partitions", "all_assigned")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    ALL_ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionRef]
    all_assigned: bool
    def __init__(self, partitions: _Optional[_Iterable[_Union[PartitionRef, _Mapping]]] = ..., all_assigned: _Optional[bool] = ...) -> None: ...

class TriggerFlushResponse(_message.Message):
    __slots__ = ("flushed",)
    FLUSHED_FIELD_NUMBER: _ClassVar[int]
    flushed: _containers.RepeatedCompositeFieldContainer[PartitionRef]
    def __init__(self, flushed: _Optional[_Iterable[_Union[PartitionRef, _Mapping]]] = ...) -> None: ...

class MetricsSample(_message.Message):
    __slots__ = ("broker_id", "timestamp_ms", "gauges", "counters", "cluster_id")
    class GaugesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class CountersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    GAUGES_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    broker_id: str
    timestamp_ms: int
    gauges: _containers.ScalarMap[str, float]
    counters: _containers.ScalarMap[str, float]
    cluster_id: str
    def __init__(self, broker_id: _Optional[str] = ..., timestamp_ms: _Optional[int] = ..., gauges: _Optional[_Mapping[str, float]] = ..., counters: _Optional[_Mapping[str, float]] = ..., cluster_id: _Optional[str] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...

class AssignmentWatchRequest(_message.Message):
    __slots__ = ("broker_id", "cluster_id")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    broker_id: str
    cluster_id: str
    def __init__(self, broker_id: _Optional[str] = ..., cluster_id: _Optional[str] = ...) -> None: ...

class PartitionAssignmentEvent(_message.Message):
    __slots__ = ("partition", "broker_id", "status", "epoch", "moving_to", "is_initial")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MOVING_TO_FIELD_NUMBER: _ClassVar[int]
    IS_INITIAL_FIELD_NUMBER: _ClassVar[int]
    partition: PartitionRef
    broker_id: str
    status: str
    epoch: int
    moving_to: str
    is_initial: bool
    def __init__(self, partition: _Optional[_Union[PartitionRef, _Mapping]] = ..., broker_id: _Optional[str] = ..., status: _Optional[str] = ..., epoch: _Optional[int] = ..., moving_to: _Optional[str] = ..., is_initial: _Optional[bool] = ...) -> None: ...

class SealTailRequest(_message.Message):
    __slots__ = ("partition",)
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    partition: PartitionRef
    def __init__(self, partition: _Optional[_Union[PartitionRef, _Mapping]] = ...) -> None: ...

class SealTailResponse(_message.Message):
    __slots__ = ("rolled_end_offset", "log_start_offset")
    ROLLED_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    rolled_end_offset: int
    log_start_offset: int
    def __init__(self, rolled_end_offset: _Optional[int] = ..., log_start_offset: _Optional[int] = ...) -> None: ...

class SwapSegmentsRequest(_message.Message):
    __slots__ = ("partition", "job", "checksums")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    CHECKSUMS_FIELD_NUMBER: _ClassVar[int]
    partition: PartitionRef
    job: str
    checksums: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, partition: _Optional[_Union[PartitionRef, _Mapping]] = ..., job: _Optional[str] = ..., checksums: _Optional[_Iterable[int]] = ...) -> None: ...

class SwapSegmentsResponse(_message.Message):
    __slots__ = ("base_offset", "end_offset", "segments_before", "segments_after", "bytes_before", "bytes_after")
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_AFTER_FIELD_NUMBER: _ClassVar[int]
    BYTES_BEFORE_FIELD_NUMBER: _ClassVar[int]
    BYTES_AFTER_FIELD_NUMBER: _ClassVar[int]
    base_offset: int
    end_offset: int
    segments_before: int
    segments_after: int
    bytes_before: int
    bytes_after: int
    def __init__(self, base_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., segments_before: _Optional[int] = ..., segments_after: _Optional[int] = ..., bytes_before: _Optional[int] = ..., bytes_after: _Optional[int] = ...) -> None: ...

class RebalanceRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RebalanceResponse(_message.Message):
    __slots__ = ("moves",)
    MOVES_FIELD_NUMBER: _ClassVar[int]
    moves: _containers.RepeatedCompositeFieldContainer[Move]
    def __init__(self, moves: _Optional[_Iterable[_Union[Move, _Mapping]]] = ...) -> None: ...

class Move(_message.Message):
    __slots__ = ("partition", "from_broker", "to_broker")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FROM_BROKER_FIELD_NUMBER: _ClassVar[int]
    TO_BROKER_FIELD_NUMBER: _ClassVar[int]
    partition: PartitionRef
    from_broker: str
    to_broker: str
    def __init__(self, partition: _Optional[_Union[PartitionRef, _Mapping]] = ..., from_broker: _Optional[str] = ..., to_broker: _Optional[str] = ...) -> None: ...

class TransactionMarker(_message.Message):
    __slots__ = ("producer_id", "producer_epoch", "coordinator_epoch", "committed", "partitions", "bumps_epoch")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_EPOCH_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    BUMPS_EPOCH_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionRef]
    bumps_epoch: bool
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., coordinator_epoch: _Optional[int] = ..., committed: _Optional[bool] = ..., partitions: _Optional[_Iterable[_Union[PartitionRef, _Mapping]]] = ..., bumps_epoch: _Optional[bool] = ...) -> None: ...

class WriteTransactionMarkersRequest(_message.Message):
    __slots__ = ("markers",)
    MARKERS_FIELD_NUMBER: _ClassVar[int]
    markers: _containers.RepeatedCompositeFieldContainer[TransactionMarker]
    def __init__(self, markers: _Optional[_Iterable[_Union[TransactionMarker, _Mapping]]] = ...) -> None: ...

class WriteTransactionMarkersResponse(_message.Message):
    __slots__ = ("error_codes",)
    ERROR_CODES_FIELD_NUMBER: _ClassVar[int]
    error_codes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, error_codes: _Optional[_Iterable[int]] = ...) -> None: ...

class AddPartitionsToTransactionRequest(_message.Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "partitions")
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    VERIFY_ONLY_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionRef]
    def __init__(self, transactional_id: _Optional[str] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., verify_only: _Optional[bool] = ..., partitions: _Optional[_Iterable[_Union[PartitionRef, _Mapping]]] = ...) -> None: ...

class AddPartitionsToTransactionResponse(_message.Message):
    __slots__ = ("error_codes",)
    ERROR_CODES_FIELD_NUMBER: _ClassVar[int]
    error_codes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, error_codes: _Optional[_Iterable[int]] = ...) -> None: ...
