"""A partition as the control plane names it: a value that can be compared, sorted and looked up."""

from typing import NamedTuple

from kafscale.control_plane.messages import PartitionRef
from kafscale.errors import InvalidRequestError


class Partition(NamedTuple):
    """A topic and a number; of the topic of shards, a shard of consumer groups."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"

    @property
    def message(self) -> PartitionRef:
        return PartitionRef(topic=self.topic, partition=self.number)

    @classmethod
    def of(cls, message: PartitionRef) -> "Partition":
        """The partition that a request means."""
        if not message.topic:
            raise InvalidRequestError("a partition is named by its topic and its number")
        return cls(message.topic, message.partition)
