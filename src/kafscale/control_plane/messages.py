"""The messages and methods of the control plane, declared in proto/control/broker.proto.

Messages are never stored: persistent state belongs to the metadata package. Servers and clients are
built from the declaration itself, so that no second list of methods can disagree with it.
"""

from typing import Any, Final, NamedTuple

from google.protobuf.message_factory import GetMessageClass

from kafscale.control_plane._generated import broker_pb2
from kafscale.control_plane._generated.broker_pb2 import *  # noqa: F403 - all are exported.
from kafscale.errors import InvalidRequestError


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
    for service in broker_pb2.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
"""All methods of all services, by name."""

assert len(METHODS) == sum(
    len(service.methods) for service in broker_pb2.DESCRIPTOR.services_by_name.values()
), "no two services have a method of the same name"


class Partition(NamedTuple):
    """A `TopicPartition` that messages name: of the shard topic, a shard of consumer groups."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"

    @property
    def message(self) -> broker_pb2.PartitionRef:
        return broker_pb2.PartitionRef(topic=self.topic, partition=self.number)

    @classmethod
    def of(cls, message: broker_pb2.PartitionRef) -> "Partition":
        """The partition of a request."""
        if not message.topic:
            raise InvalidRequestError("a partition must have a topic")
        return cls(message.topic, message.partition)
