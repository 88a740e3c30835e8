"""What the control plane requires of a broker; the broker package implements it.

Errors are those of `kafscale.errors` (or `NotControllerError`), with a message for the client:
`UnknownTopicError` if the partition does not exist, `NotOwnerError` if another broker owns it,
`InvalidRequestError`, or `OperatingError` if a store fails. Work that a request has started
continues if the client disconnects.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kafscale.control_plane.assignment_feed import PartitionOwners
from kafscale.control_plane.messages import (
    BrokerStatusResponse,
    Move,
    SealTailResponse,
    SwapSegmentsResponse,
)
from kafscale.control_plane.partition import Partition


class DrainResult(NamedTuple):
    """The result of a drain at its deadline."""

    drained: Sequence[Partition]
    pending: Sequence[Partition]


class ControlledBroker(Protocol):
    """A broker that can be monitored and controlled."""

    @property
    def id(self) -> int: ...

    async def status(self, *, with_partitions: bool) -> BrokerStatusResponse:
        """Its status, without the samples."""

    async def drain(
        self, partitions: Sequence[Partition] | None, reason: str, seconds_max: float
    ) -> DrainResult:
        """Transfer these partitions, or everything before leaving, within that time."""

    async def flush(self, partitions: Sequence[Partition] | None) -> Sequence[Partition]:
        """Roll these partitions into segments, or all that it owns; return which."""

    async def seal_tail(self, partition: Partition) -> SealTailResponse: ...

    async def swap_segments(self, partition: Partition, job: str) -> SwapSegmentsResponse: ...

    async def rebalance(self) -> Sequence[Move]:
        """As the controller, plan now; return the moves that are under way."""

    def partition_owners(self) -> PartitionOwners:
        """Everything that is assigned in the cluster."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever `partition_owners` may have changed."""
