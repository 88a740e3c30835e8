"""What the control plane asks of a broker; the broker room provides it.

The law: a refusal is raised as one of `kafscale.errors` (or `NotControllerError`), with a sentence
for whoever asked: `UnknownTopicError` where there is no such partition, `NotOwnerError` where it is
another broker's, `InvalidRequestError`, or `OperatingError` where a store fails. What a request has
begun goes on when nobody waits for its answer any more.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kafscale.control_plane.assignment_feed import Holdings
from kafscale.control_plane.messages import (
    BrokerStatusResponse,
    Move,
    SealTailResponse,
    SwapSegmentsResponse,
)
from kafscale.control_plane.partition import Partition


class Drained(NamedTuple):
    """What a drain has come to at its deadline."""

    drained: Sequence[Partition]
    pending: Sequence[Partition]


class ControlledBroker(Protocol):
    """A broker that can be looked at and directed."""

    @property
    def id(self) -> int: ...

    async def status(self, *, with_partitions: bool) -> BrokerStatusResponse:
        """How it does; everything but the samples."""

    async def drain(
        self, partitions: Sequence[Partition] | None, reason: str, seconds_max: float
    ) -> Drained:
        """Hand over these partitions, or everything for good; answers in that time."""

    async def flush(self, partitions: Sequence[Partition] | None) -> Sequence[Partition]:
        """Make segments of what these partitions hold now, or all that it owns; say of which."""

    async def seal_tail(self, partition: Partition) -> SealTailResponse: ...

    async def swap_segments(self, partition: Partition, job: str) -> SwapSegmentsResponse: ...

    async def rebalance(self) -> Sequence[Move]:
        """As the controller, plan now; the moves that are under way."""

    def holdings(self) -> Holdings:
        """Everything that is assigned in the cluster."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever `holdings` may have changed."""
