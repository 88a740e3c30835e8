"""A topic partition of control plane messages, as a value that can be compared and sorted."""

from typing import NamedTuple

from kafscale.control_plane.messages import PartitionRef
from kafscale.errors import InvalidRequestError


class Partition(NamedTuple):
    """A `TopicPartition` that messages name: of the shard topic, a shard of consumer groups."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"

    @property
    def message(self) -> PartitionRef:
        return PartitionRef(topic=self.topic, partition=self.number)

    @classmethod
    def of(cls, message: PartitionRef) -> "Partition":
        """The partition of a request."""
        if not message.topic:
            raise InvalidRequestError("a partition must have a topic")
        return cls(message.topic, message.partition)
