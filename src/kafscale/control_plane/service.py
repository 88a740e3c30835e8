"""The methods of the control plane, implemented by calls of a broker.

Invariants: a request is validated completely before anything is done, every method has a time
limit, and every error becomes a status with a message.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, NamedTuple, Protocol

from kafscale.control_plane.assignment_feed import AssignmentFeed, PartitionOwners
from kafscale.control_plane.messages import (
    Ack,
    AddPartitionsToTransactionRequest,
    AddPartitionsToTransactionResponse,
    AssignmentWatchRequest,
    BrokerStatusRequest,
    BrokerStatusResponse,
    DrainPartitionsRequest,
    DrainPartitionsResponse,
    MetricsSample,
    Move,
    Partition,
    PartitionAssignmentEvent,
    PartitionRef,
    RebalanceRequest,
    RebalanceResponse,
    SealTailRequest,
    SealTailResponse,
    SwapSegmentsRequest,
    SwapSegmentsResponse,
    TransactionMarker,
    TriggerFlushRequest,
    TriggerFlushResponse,
    WriteTransactionMarkersRequest,
    WriteTransactionMarkersResponse,
)
from kafscale.control_plane.samples import Samples, collect
from kafscale.errors import InvalidRequestError

WORK_SECONDS_MAX: Final = 300.0
"""The time limit of rolls and swaps, for clients without a deadline."""
DRAIN_SECONDS_DEFAULT: Final = 30
DRAIN_SECONDS_MAX: Final = 3600
PARTITIONS_MAX: Final = 10_000
"""How many partitions a request may name."""
TEXT_MAX: Final = 1_000


class DrainResult(NamedTuple):
    """The result of a drain at its deadline."""

    drained: Sequence[Partition]
    pending: Sequence[Partition]


class ControlledBroker(Protocol):
    """A broker that can be monitored and controlled; the broker package implements it.

    Errors are those of `kafscale.errors` (or `NotControllerError`), with a message for the client:
    `UnknownTopicError` if the partition does not exist, `NotOwnerError` if another broker owns it,
    `InvalidRequestError`, or `OperatingError` if a store fails. Work that a request has started
    continues if the client disconnects.
    """

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

    async def swap_segments(
        self, partition: Partition, job: str, checksums: Sequence[int]
    ) -> SwapSegmentsResponse: ...

    async def rebalance(self) -> Sequence[Move]:
        """As the controller, plan now; return the moves that are under way."""

    async def write_markers(self, markers: Sequence[TransactionMarker]) -> Sequence[int]:
        """Write markers; return the error code of each partition of each marker, in order."""

    async def add_to_transaction(self, request: AddPartitionsToTransactionRequest) -> Sequence[int]:
        """As the coordinator; return the error code of each partition, in order."""

    def partition_owners(self) -> PartitionOwners:
        """Everything that is assigned in the cluster."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever `partition_owners` may have changed."""


class ControlService:
    """The control plane methods of a broker."""

    def __init__(
        self,
        broker: ControlledBroker,
        feed: AssignmentFeed,
        samples: Samples,
        *,
        work_seconds_max: float = WORK_SECONDS_MAX,
    ) -> None:
        self._broker = broker
        self._feed = feed
        self._samples = samples
        self._work_seconds_max = work_seconds_max

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        """The handlers by method name."""
        return {
            "GetStatus": self.get_status,
            "DrainPartitions": self.drain_partitions,
            "TriggerFlush": self.trigger_flush,
            "StreamMetrics": self.stream_metrics,
            "SealTail": self.seal_tail,
            "SwapSegments": self.swap_segments,
            "Rebalance": self.rebalance,
            "WatchAssignments": self.watch_assignments,
            "WriteTransactionMarkers": self.write_transaction_markers,
            "AddPartitionsToTransaction": self.add_partitions_to_transaction,
        }

    async def get_status(self, request: BrokerStatusRequest) -> BrokerStatusResponse:
        status = await self._broker.status(with_partitions=not request.without_partitions)
        if request.with_samples:
            status.samples.extend(self._samples.fresh())
        return status

    async def drain_partitions(self, request: DrainPartitionsRequest) -> DrainPartitionsResponse:
        if not 0 <= request.deadline_seconds <= DRAIN_SECONDS_MAX:
            raise InvalidRequestError(f"the deadline must be 0 to {DRAIN_SECONDS_MAX} seconds")
        if len(request.reason) > TEXT_MAX:
            raise InvalidRequestError(f"the reason must have at most {TEXT_MAX} characters")
        result = await self._broker.drain(
            _unique_partitions(request.partitions) or None,
            request.reason,
            request.deadline_seconds or DRAIN_SECONDS_DEFAULT,
        )
        return DrainPartitionsResponse(
            drained=_messages(result.drained), pending=_messages(result.pending)
        )

    async def trigger_flush(self, request: TriggerFlushRequest) -> TriggerFlushResponse:
        partitions = None if request.all_assigned else _unique_partitions(request.partitions)
        if partitions == []:
            raise InvalidRequestError("name partitions, or set all_assigned")
        async with self._work("the flush"):
            flushed = await self._broker.flush(partitions)
        return TriggerFlushResponse(flushed=_messages(flushed))

    async def stream_metrics(self, samples: AsyncIterator[MetricsSample]) -> Ack:
        return await collect(samples, self._samples.take)

    async def seal_tail(self, request: SealTailRequest) -> SealTailResponse:
        partition = Partition.of(request.partition)
        async with self._work("sealing"):
            return await self._broker.seal_tail(partition)

    async def swap_segments(self, request: SwapSegmentsRequest) -> SwapSegmentsResponse:
        partition = Partition.of(request.partition)
        if not request.job:
            raise InvalidRequestError("job is required: the job that has staged the segments")
        async with self._work("the swap"):
            return await self._broker.swap_segments(partition, request.job, request.checksums)

    async def rebalance(self, _request: RebalanceRequest) -> RebalanceResponse:
        async with self._work("planning"):
            return RebalanceResponse(moves=await self._broker.rebalance())

    async def write_transaction_markers(
        self, request: WriteTransactionMarkersRequest
    ) -> WriteTransactionMarkersResponse:
        _check_count(sum(len(marker.partitions) for marker in request.markers))
        codes = await self._broker.write_markers(request.markers)
        return WriteTransactionMarkersResponse(error_codes=codes)

    async def add_partitions_to_transaction(
        self, request: AddPartitionsToTransactionRequest
    ) -> AddPartitionsToTransactionResponse:
        _check_count(len(request.partitions))
        codes = await self._broker.add_to_transaction(request)
        return AddPartitionsToTransactionResponse(error_codes=codes)

    async def watch_assignments(
        self, request: AssignmentWatchRequest
    ) -> AsyncGenerator[PartitionAssignmentEvent, None]:
        async with aclosing(self._feed.watch(request.broker_id)) as events:
            async for event in events:
                yield event

    @asynccontextmanager
    async def _work(self, what: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._work_seconds_max):
                yield
        except TimeoutError as error:
            late = f"{what} takes more than {self._work_seconds_max:g} seconds, and continues"
            raise TimeoutError(late) from error


def _unique_partitions(messages: Iterable[PartitionRef]) -> list[Partition]:
    """The partitions of a request, without duplicates."""
    unique = list(dict.fromkeys(map(Partition.of, messages)))
    _check_count(len(unique))
    return unique


def _check_count(count: int) -> None:
    if count > PARTITIONS_MAX:
        raise InvalidRequestError(f"a request may name at most {PARTITIONS_MAX} partitions")


def _messages(partitions: Iterable[Partition]) -> list[PartitionRef]:
    return [partition.message for partition in partitions]
