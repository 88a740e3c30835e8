"""What is said on the control plane; declared, with what it means, in proto/control/broker.proto.

The law: messages are made and read here and in the rooms that are asked or ask. None of them is
ever stored: what lasts is the metadata room's.
"""

from kafscale.control_plane._generated.broker_pb2 import (
    DESCRIPTOR,
    Ack,
    AssignmentWatchRequest,
    BrokerStatusRequest,
    BrokerStatusResponse,
    BrokerSummary,
    DrainPartitionsRequest,
    DrainPartitionsResponse,
    MetricsSample,
    Move,
    PartitionAssignmentEvent,
    PartitionRef,
    PartitionStatus,
    RebalanceRequest,
    RebalanceResponse,
    SealTailRequest,
    SealTailResponse,
    SwapSegmentsRequest,
    SwapSegmentsResponse,
    TriggerFlushRequest,
    TriggerFlushResponse,
)

__all__ = [
    "DESCRIPTOR",
    "Ack",
    "AssignmentWatchRequest",
    "BrokerStatusRequest",
    "BrokerStatusResponse",
    "BrokerSummary",
    "DrainPartitionsRequest",
    "DrainPartitionsResponse",
    "MetricsSample",
    "Move",
    "PartitionAssignmentEvent",
    "PartitionRef",
    "PartitionStatus",
    "RebalanceRequest",
    "RebalanceResponse",
    "SealTailRequest",
    "SealTailResponse",
    "SwapSegmentsRequest",
    "SwapSegmentsResponse",
    "TriggerFlushRequest",
    "TriggerFlushResponse",
]
