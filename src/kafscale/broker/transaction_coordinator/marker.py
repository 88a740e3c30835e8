"""`Marker`: the outcome of one transaction, for some of its partitions."""

from collections.abc import Sequence
from typing import NamedTuple, Self

from kafscale.control_plane.messages import Partition, TransactionMarker
from kafscale.text.topic_partition import TopicPartition


class Marker(NamedTuple):
    """Ends the transaction of a producer in some partitions."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    partitions: Sequence[TopicPartition]
    """Those of the shard topic are the shards of the groups whose offsets were committed."""
    bumps_epoch: bool = False
    """Whether the epoch is higher than that of the transaction (KIP-890): a transaction with the
    marker's own epoch is a later one, which the marker must not end."""

    @property
    def message(self) -> TransactionMarker:
        return TransactionMarker(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            coordinator_epoch=self.coordinator_epoch,
            committed=self.is_commit,
            partitions=[Partition(*each).message for each in self.partitions],
            bumps_epoch=self.bumps_epoch,
        )

    @classmethod
    def of(cls, message: TransactionMarker) -> Self:
        return cls(
            message.producer_id,
            message.producer_epoch,
            message.coordinator_epoch,
            message.committed,
            [(each.topic, each.partition) for each in message.partitions],
            message.bumps_epoch,
        )
