"""A piece: one partition, or one shard of groups, as planning sees it.

Data only: who has it, and where it is to be. The law: a piece has a home if its owner is alive, and
only then can it be handed over; one without is given away, once nobody can write to it any more.
"""

from collections.abc import Mapping
from typing import Final

from kafscale.metadata.schema.model import Assignment, BrokerInfo

NOWHERE: Final = -1


class Piece:
    """What is to be had by one broker."""

    __slots__ = ("before", "destination", "home", "is_leaving", "partition", "topic")

    def __init__(
        self,
        topic: str,
        partition: int,
        before: Assignment | None,
        brokers: Mapping[int, BrokerInfo],
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.before = before
        owner = brokers.get(before.broker_id) if before else None
        # An owner that is newer than what is seen of it is alive: it will be seen.
        is_alive = before is not None and owner is not None and before.broker_epoch >= owner.epoch
        self.home = owner.id if owner and is_alive else NOWHERE
        """The broker that owns it, and lives."""
        self.is_leaving = owner is not None and is_alive and owner.is_draining
        """Whether its owner wants to be rid of it."""
        self.destination = NOWHERE
        """The broker that it is meant for."""

    @property
    def is_orphan(self) -> bool:
        """Whether it had an owner, which is over."""
        return self.before is not None and self.home == NOWHERE

    @property
    def is_moving(self) -> bool:
        """Whether it moves although its owner could keep it."""
        return self.home not in {NOWHERE, self.destination} and not self.is_leaving
