"""The messages and methods of the control plane, declared in proto/control/broker.proto.

Messages are never stored: persistent state belongs to the metadata package. Servers and clients are
built from the declaration itself, so that no second list of methods can disagree with it.
"""

from typing import Any, Final, NamedTuple

from google.protobuf.message_factory import GetMessageClass

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
    "METHODS",
    "Ack",
    "AssignmentWatchRequest",
    "BrokerStatusRequest",
    "BrokerStatusResponse",
    "BrokerSummary",
    "DrainPartitionsRequest",
    "DrainPartitionsResponse",
    "Method",
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


class Method(NamedTuple):
    """One method, with its request and response types."""

    service: str
    name: str
    request: Any
    response: Any
    client_streaming: bool
    server_streaming: bool

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"


METHODS: Final = {
    method.name: Method(
        service=service.full_name,
        name=method.name,
        request=GetMessageClass(method.input_type),
        response=GetMessageClass(method.output_type),
        client_streaming=method.client_streaming,
        server_streaming=method.server_streaming,
    )
    for service in DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
"""All methods of all services, by name."""

assert len(METHODS) == sum(
    len(service.methods) for service in DESCRIPTOR.services_by_name.values()
), "no two services have a method of the same name"
