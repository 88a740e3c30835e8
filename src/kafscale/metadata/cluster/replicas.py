"""The replicas of a partition, as Kafka's clients see them: its owner, or the requested brokers.

The object store keeps the records, and one broker at a time serves them. So a list of replicas is
an order of preference, in which brokers own the partition. Every live broker could own it without
losing a record, and is in sync in this sense. Invariants:

1. The preferred owner is the first broker of the list that is live and not draining.
2. A reassignment is in progress while a broker that is not in the list owns the partition, and
   there is a preferred owner that it moves to.
3. While no broker of the list can own the partition, its owner is its only replica.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema.model import NO_BROKER, BrokerInfo, Topic


class PartitionReplicas(NamedTuple):
    """The owner and the replicas of one partition."""

    leader_id: int
    """The owner, or `NO_BROKER`."""
    leader_epoch: int
    replicas: Sequence[int]
    in_sync: Sequence[int]
    offline: Sequence[int] = ()
    adding: Sequence[int] = ()
    removing: Sequence[int] = ()

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding)

    @property
    def target(self) -> Sequence[int]:
        """The replicas after the reassignment."""
        return self.adding or self.replicas


def preferred_owner(broker_ids: Sequence[int], brokers: Mapping[int, BrokerInfo]) -> int:
    """The broker that is to own a partition with this list of replicas, or `NO_BROKER`."""
    for broker_id in broker_ids:
        broker = brokers.get(broker_id)
        if broker is not None and not broker.is_draining:
            return broker_id
    return NO_BROKER


def partition_replicas(cluster: ClusterCache, topic: Topic, index: int) -> PartitionReplicas:
    """The replicas of a partition, as the cache shows them."""
    leader_id, leader_epoch = cluster.leader(topic.name, index)
    owner = () if leader_id == NO_BROKER else (leader_id,)
    requested = topic.replicas.get(index)
    if requested is None:
        return PartitionReplicas(leader_id, leader_epoch, owner, owner)
    if owner and leader_id not in requested:
        if preferred_owner(requested, cluster.brokers) == NO_BROKER:
            return PartitionReplicas(leader_id, leader_epoch, owner, owner)
        return PartitionReplicas(
            leader_id,
            leader_epoch,
            replicas=(*requested, leader_id),
            in_sync=owner,
            offline=_offline(cluster, requested),
            adding=requested,
            removing=owner,
        )
    offline = _offline(cluster, requested)
    return PartitionReplicas(
        leader_id,
        leader_epoch,
        replicas=requested,
        in_sync=tuple(broker_id for broker_id in requested if broker_id not in offline),
        offline=offline,
    )


def _offline(cluster: ClusterCache, broker_ids: Sequence[int]) -> Sequence[int]:
    return tuple(broker_id for broker_id in broker_ids if broker_id not in cluster.brokers)
