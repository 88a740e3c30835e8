"""The control plane of a broker: starts its server, and implements `ControlledBroker`.

Invariants: a request may name only partitions that this broker owns, or nothing is done at all.
Work that has been started is completed, whether the client still waits or not.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kafscale.broker.cluster.controller.controller import Controller
from kafscale.broker.cluster.drain import Drainer
from kafscale.broker.cluster.node import ClusterNode
from kafscale.broker.cluster.registration import Registration
from kafscale.broker.control_plane import status as control_plane_status
from kafscale.broker.network.sockets import reachable_host
from kafscale.broker.services import Services
from kafscale.broker.transaction_coordinator.transactions import Transactions
from kafscale.control_plane.assignment_feed import PartitionOwners, partition_owners
from kafscale.control_plane.errors import NotControllerError
from kafscale.control_plane.messages import (
    AddPartitionsToTransactionRequest,
    BrokerStatusResponse,
    Move,
    Partition,
    SealTailResponse,
    SwapSegmentsResponse,
    TransactionMarker,
)
from kafscale.control_plane.server import ControlServer
from kafscale.control_plane.service import DrainResult
from kafscale.control_plane.tls import AllowedSubjects, ServerTls
from kafscale.errors import InvalidRequestError, NotOwnerError, UnknownTopicError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema.model import NO_BROKER, SHARD_COUNT, SHARDS_TOPIC
from kafscale.metadata.topics.store import TopicStore
from kafscale.net.address import Address, is_loopback
from kafscale.observability.logging import get_logger
from kafscale.storage.engine import StorageEngine
from kafscale.storage.formats import object_keys
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.segments.segment_writer import RollReason
from kafscale.storage.segments.swap import SwapResult
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)

CONCURRENT_ROLLS_MAX: Final = 8
"""How many partitions a flush rolls at once: enough to hide store latency, few enough for
producers.
"""

_JOB: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class BrokerParts:
    """The parts of a broker that the control plane reads and calls."""

    broker_id: int
    cluster_id: str
    namespace: str
    cache: ClusterCache
    topic_store: TopicStore
    storage: StorageEngine
    swap: Callable[[PartitionLog, str, Sequence[int]], Coroutine[Any, Any, SwapResult]]
    transactions: Transactions
    registration: Registration
    drainer: Drainer
    controller: Controller
    problems: Callable[[], Mapping[str, str]]
    """Why the broker cannot serve clients, by component."""
    store_health: Callable[[], str]
    idle_seconds: Callable[[], float]
    """How long no client has been connected."""
    metrics_address: Address
    clock: Callable[[], int]


class BrokerControlService:
    """Implements `ControlledBroker`."""

    def __init__(self, parts: BrokerParts) -> None:
        self._parts = parts
        self._started_ms = parts.clock()
        self._work: set[asyncio.Task[Any]] = set()
        self._limit = asyncio.Semaphore(CONCURRENT_ROLLS_MAX)

    @property
    def id(self) -> int:
        return self._parts.broker_id

    async def close(self) -> None:
        """Cancel running work; that is as safe as a crash."""
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    # --- status -------------------------------------------------------------------------------

    async def status(self, *, with_partitions: bool) -> BrokerStatusResponse:
        return await control_plane_status.status(
            self._parts, started_ms=self._started_ms, with_partitions=with_partitions
        )

    def partition_owners(self) -> PartitionOwners:
        return partition_owners(self._parts.cache)

    def subscribe(self, listener: Callable[[], None]) -> None:
        self._parts.cache.subscribe(listener)

    # --- ownership ----------------------------------------------------------------------------

    async def drain(
        self, partitions: Sequence[Partition] | None, reason: str, seconds_max: float
    ) -> DrainResult:
        for partition in partitions or ():
            self._check_owned(partition)
        logger.info(
            "drain requested",
            reason=reason,
            deadline_seconds=seconds_max,
            partitions="all" if partitions is None else len(partitions),
        )
        drained, pending = await self._run_to_completion(
            self._parts.drainer.drain(partitions, seconds_max)
        )
        return DrainResult(_sorted(drained), _sorted(pending))

    async def rebalance(self) -> Sequence[Move]:
        cache = self._parts.cache
        if not self._parts.controller.is_controller:
            raise NotControllerError(f"not the controller: {_describe_broker(cache.controller_id)}")
        await self._run_to_completion(self._parts.controller.rebalance())
        return [
            Move(
                partition=Partition(each.topic, each.partition).message,
                from_broker=str(each.broker_id),
                to_broker=str(each.reassigning_to),
            )
            for each in cache.all_assignments()
            if each.reassigning_to is not None
        ]

    # --- segments -----------------------------------------------------------------------------

    async def flush(self, partitions: Sequence[Partition] | None) -> Sequence[Partition]:
        if partitions is None:
            logs = list(self._parts.storage.logs)
        else:
            logs = [self._find(partition) for partition in partitions]
        await self._run_to_completion(self._roll(logs))
        if partitions is not None:
            for each in logs:
                self._check_open(each)
        return _sorted((each.topic, each.partition) for each in logs if not each.closed)

    async def seal_tail(self, partition: Partition) -> SealTailResponse:
        log = self._find(partition)
        await self._run_to_completion(self._roll([log]))
        self._check_open(log)
        return SealTailResponse(
            rolled_end_offset=log.tail.rolled_offset, log_start_offset=log.start_offset
        )

    async def swap_segments(
        self, partition: Partition, job: str, checksums: Sequence[int]
    ) -> SwapSegmentsResponse:
        if not _JOB.fullmatch(job):
            raise InvalidRequestError(
                "a job name must have 1 to 100 letters, digits, dots, underscores and hyphens"
            )
        log = self._find(partition)
        prefix = object_keys.staging_prefix(
            self._parts.namespace, job, log.directory, log.partition
        )
        result = await self._run_to_completion(self._parts.swap(log, prefix, checksums))
        return SwapSegmentsResponse(
            base_offset=result.start_offset,
            end_offset=result.end_offset,
            segments_before=result.count_before,
            segments_after=result.count_after,
            bytes_before=result.bytes_before,
            bytes_after=result.bytes_after,
        )

    # --- transactions ---------------------------------------------------------------------------

    async def write_markers(self, markers: Sequence[TransactionMarker]) -> Sequence[int]:
        return await self._parts.transactions.write_markers(markers)

    async def add_to_transaction(self, request: AddPartitionsToTransactionRequest) -> Sequence[int]:
        return await self._parts.transactions.verifier.answer(request)

    # --- rolling --------------------------------------------------------------------------------

    async def _roll(self, logs: Sequence[PartitionLog]) -> None:
        """Make everything durable, and roll it into segments."""
        if logs:
            await self._parts.storage.wal.flush()
            await asyncio.gather(*map(self._roll_one, logs))

    async def _roll_one(self, partition: PartitionLog) -> None:
        async with self._limit:
            await self._parts.storage.roll_scheduler.roll(partition, RollReason.EXPLICIT)

    # --- checks -------------------------------------------------------------------------------

    def _find(self, partition: Partition) -> PartitionLog:
        """The log of a partition that is served here."""
        self._check_exists(partition)
        if partition.topic == SHARDS_TOPIC:
            raise InvalidRequestError("a shard of consumer groups has no segments")
        log = self._parts.storage.logs.get(*partition)
        if log is None or log.closed:
            self._check_owned(partition)
            raise NotOwnerError(f"{partition} is not open yet; try again")
        return log

    def _check_exists(self, partition: Partition) -> None:
        count = SHARD_COUNT
        if partition.topic != SHARDS_TOPIC:
            topic = self._parts.topic_store.get(partition.topic)
            if topic is None:
                raise UnknownTopicError(f"there is no topic {partition.topic!r}")
            count = topic.partitions
        if not 0 <= partition.number < count:
            raise UnknownTopicError(f"there is no partition {partition}, only 0 to {count - 1}")

    def _check_owned(self, partition: Partition) -> None:
        self._check_exists(partition)
        owner_id, _ = self._parts.cache.leader(*partition)
        if owner_id != self._parts.broker_id:
            raise NotOwnerError(f"not the owner of {partition}: {_describe_broker(owner_id)}")

    def _check_open(self, log: PartitionLog) -> None:
        if log.closed:
            self._check_owned(Partition(log.topic, log.partition))
            raise NotOwnerError(f"{log.topic}/{log.partition} was closed concurrently; try again")

    async def _run_to_completion(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run work that continues even if the caller is cancelled."""
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_failure)
            raise


def _log_failure(task: "asyncio.Task[Any]") -> None:
    """Log the failure of work whose caller was cancelled."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.warning("control request failed after cancellation", reason=str(error))


def _describe_broker(broker_id: int) -> str:
    return "no broker is" if broker_id == NO_BROKER else f"broker {broker_id} is"


def _sorted(topic_partitions: Iterable[TopicPartition]) -> list[Partition]:
    return sorted(Partition(topic, number) for topic, number in topic_partitions)


@asynccontextmanager
async def control_plane(
    services: Services, node: ClusterNode, metrics_address: Address
) -> AsyncIterator[ControlServer]:
    """Serve the control plane inside the block, and set its address in the registration."""
    settings, security = services.config.broker, services.config.control
    broker = BrokerControlService(_parts(services, node, metrics_address))
    server = ControlServer(
        broker,
        tls=ServerTls(security.tls) if security.tls.enabled else None,
        allowed_subjects=AllowedSubjects(security.allowed_subjects),
    )
    await server.start(settings.control_host, settings.control_port)
    host = reachable_host(settings.control_host)
    if settings.advertised_host and not is_loopback(settings.control_host):
        host = settings.advertised_host
    services.registration.set_control_address(Address(host, server.port))
    try:
        yield server
    finally:
        await server.close()
        await broker.close()


def _parts(services: Services, node: ClusterNode, metrics_address: Address) -> BrokerParts:
    return BrokerParts(
        broker_id=services.node_id,
        cluster_id=services.cluster_id,
        namespace=services.config.s3.namespace,
        cache=services.cluster,
        topic_store=services.topic_store,
        storage=services.storage,
        swap=services.storage.swap_segments,
        transactions=services.transactions,
        registration=services.registration,
        drainer=node.drainer,
        controller=node.controller,
        problems=services.health.problems,
        store_health=lambda: services.metrics.store_health.state,
        idle_seconds=services.metrics.idle_seconds,
        metrics_address=metrics_address,
        clock=services.clock,
    )
