"""Assignment units: what the controller assigns to brokers."""

from collections.abc import Mapping, Sequence

from kafscale.metadata.cluster.replicas import preferred_owner
from kafscale.metadata.schema.model import NO_BROKER, Assignment, BrokerInfo


class AssignmentUnit:
    """One partition, or one shard of consumer groups: who owns it, and where it is to be.

    It has an owner only while that broker's session lasts, and only then can it be transferred. A
    unit without an owner is assigned to another broker, once its former owner is fenced.
    """

    __slots__ = (
        "before",
        "is_waiting",
        "owner",
        "owner_draining",
        "partition",
        "preferred",
        "target",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        before: Assignment | None,
        brokers: Mapping[int, BrokerInfo],
        topic_id: bytes = b"",
        *,
        replicas: Sequence[int] = (),
    ) -> None:
        """`replicas` are the brokers that were requested for it, in the order of preference."""
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.before = before
        owner = brokers.get(before.broker_id) if before else None
        # An owner with a later epoch than its cached registration is alive: the cache is behind.
        is_alive = before is not None and owner is not None and before.broker_epoch >= owner.epoch
        self.owner = owner.id if owner and is_alive else NO_BROKER
        """The live broker that owns it, or `NO_BROKER`."""
        self.owner_draining = owner is not None and is_alive and owner.is_draining
        """Whether its owner is draining."""
        self.preferred = preferred_owner(replicas, brokers) if replicas else NO_BROKER
        """The broker that was requested for it; `NO_BROKER` if any will do."""
        self.target = NO_BROKER
        """The broker that it is planned for."""
        self.is_waiting = False
        """Whether its move to the target is not started yet, because of too many others."""

    @property
    def owner_lost(self) -> bool:
        """Whether it had an owner, whose session is over."""
        return self.before is not None and self.owner == NO_BROKER

    @property
    def is_moving(self) -> bool:
        """Whether it moves although its owner could keep it."""
        return self.owner not in {NO_BROKER, self.target} and not self.owner_draining
