"""`MarkerSender`: brings the markers of ended transactions to all of their partitions.

Invariants: a marker is sent until its partition has it, or is proven to be deleted, or the shard of
the transactional id has another coordinator, which sends it then. It is sent only while the lease
of this broker is valid: a late one would end the producer's next transaction. Markers of many
transactions for one broker share a request, and few requests are on their way to it. What waits is
bounded by the partitions of the open transactions.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from typing import Final

import msgspec

from kafscale.broker.shards.shard_session import ShardSession
from kafscale.broker.transaction_coordinator.marker import Marker
from kafscale.broker.transaction_coordinator.marker_writer import MarkerWriter
from kafscale.broker.transaction_coordinator.peers import Peers
from kafscale.errors import (
    InvalidProducerEpochError,
    KafscaleError,
    ProducerFencedError,
    TransactionCoordinatorFencedError,
)
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import NO_BROKER, SHARDS_TOPIC
from kafscale.metadata.schema.topic_codec import decode_topic
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger
from kafscale.protocol.error_codes import ErrorCode, error_code_of
from kafscale.text.topic_partition import TopicPartition
from kafscale.transactions.effects import WriteMarkers

logger = get_logger(__name__)

RETRY_SECONDS_MIN: Final = 0.02
RETRY_SECONDS_MAX: Final = 1.0
LOGGED_TRIES: Final = 10
"""After this number of tries, a marker that cannot be written is logged, and then again and again,
each time after twice as many."""

OVERTAKEN: Final = frozenset(
    {
        InvalidProducerEpochError.code,
        ProducerFencedError.code,
        TransactionCoordinatorFencedError.code,
    }
)
"""The partition has a marker of a later transaction of the producer, or by a later coordinator. It
had the marker of this one before, as the later one cannot have begun otherwise."""

REQUEST_PARTITIONS_MAX: Final = 5_000

REQUESTS_MAX: Final = 2
"""Requests that are on their way to one other broker. It answers when markers are durable; if its
bucket is slow, many requests of many coordinators would leave it none for anything else."""

OnWritten = Callable[[frozenset[TopicPartition]], None]


class _Pending(msgspec.Struct, eq=False):
    """The marker of one transaction for one partition."""

    session: ShardSession
    marker: WriteMarkers
    coordinator_epoch: int
    bumps_epoch: bool
    partition: TopicPartition
    on_written: OnWritten
    tries: int = 0


class MarkerSender:
    """Sends markers to the leaders of partitions."""

    def __init__(
        self,
        writer: MarkerWriter,
        peers: Peers,
        store: MetadataStore,
        cluster_cache: ClusterCache,
        topic_store: TopicStore,
        *,
        broker_id: int,
        lease_is_valid: Callable[[], bool],
    ) -> None:
        """`lease_is_valid` is whether no other broker can be the coordinator, by our own clock."""
        self._writer = writer
        self._peers = peers
        self._store = store
        self._cluster_cache = cluster_cache
        self._topic_store = topic_store
        self._broker_id = broker_id
        self._lease_is_valid = lease_is_valid
        self._by_leader: dict[int, deque[_Pending]] = defaultdict(deque)
        """Markers that wait for a request to a broker."""
        self._requests: dict[int, int] = defaultdict(int)
        """How many requests are on their way to each broker."""
        self._leaderless: dict[str, list[_Pending]] = defaultdict(list)
        """Markers for partitions without a leader, by topic."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._pending_count = 0

    @property
    def pending_count(self) -> int:
        """How many markers are not written yet."""
        return self._pending_count

    def send(
        self,
        session: ShardSession,
        marker: WriteMarkers,
        on_written: OnWritten,
        *,
        bumps_epoch: bool,
    ) -> None:
        """Send a marker to its partitions; `on_written` is called with those that have it."""
        epoch = session.guard.assignment.leader_epoch
        self._pending_count += len(marker.partitions)
        for partition in sorted(marker.partitions):
            self._route(_Pending(session, marker, epoch, bumps_epoch, partition, on_written))

    async def close(self) -> None:
        """Stop sending; the next coordinator of each shard continues."""
        for timer in self._timers:
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._peers.close()

    # --- sending --------------------------------------------------------------------------------

    def _route(self, pending: _Pending) -> None:
        if pending.session.has_ended:
            self._pending_count -= 1
            return
        if not self._lease_is_valid():
            # Another coordinator may have written it, and the next transaction may have begun.
            self._retry(pending, "the lease of this broker is not confirmed")
            return
        leader_id, _ = self._cluster_cache.leader(*pending.partition)
        # Markers of other transactions that are ended in the same turn go along.
        call_soon = asyncio.get_running_loop().call_soon
        if leader_id == NO_BROKER:
            leaderless = self._leaderless[pending.partition[0]]
            leaderless.append(pending)
            if len(leaderless) == 1:
                call_soon(self._check_leaderless, pending.partition[0])
            return
        waiting = self._by_leader[leader_id]
        waiting.append(pending)
        if len(waiting) == 1:
            call_soon(self._flush, leader_id)

    def _flush(self, leader_id: int) -> None:
        """Send what waits for a broker; requests that end send the rest."""
        is_here = leader_id == self._broker_id
        while self._by_leader[leader_id] and (is_here or self._requests[leader_id] < REQUESTS_MAX):
            batch = self._take(leader_id)
            if batch:
                self._requests[leader_id] += 1
                self._start(self._write(leader_id, batch))
        if not self._by_leader[leader_id]:
            del self._by_leader[leader_id]

    def _take(self, leader_id: int) -> Sequence[_Pending]:
        """The next markers for a broker, except those that must not go there any more."""
        waiting = self._by_leader[leader_id]
        batch: list[_Pending] = []
        while waiting and len(batch) < REQUEST_PARTITIONS_MAX:
            pending = waiting.popleft()
            if (
                not pending.session.has_ended
                and self._lease_is_valid()
                and self._cluster_cache.leader(*pending.partition)[0] == leader_id
            ):
                batch.append(pending)
            else:
                self._route(pending)
        return batch

    async def _write(self, leader_id: int, batch: Sequence[_Pending]) -> None:
        groups = _by_transaction(batch)
        codes: Sequence[int] = [ErrorCode.UNKNOWN_SERVER_ERROR] * len(batch)
        try:
            codes = await self._codes(leader_id, [_marker(group) for group in groups])
        except KafscaleError as error:
            logger.info("markers not sent", broker_id=leader_id, reason=str(error))
        except Exception:
            # A boundary: without its marker, a transaction would stay open.
            logger.exception("markers not sent", broker_id=leader_id)
        self._requests[leader_id] -= 1
        self._flush(leader_id)
        position = 0
        for group in groups:
            self._finish(group, codes[position : position + len(group)])
            position += len(group)

    async def _codes(self, leader_id: int, markers: Sequence[Marker]) -> Sequence[int]:
        if leader_id != self._broker_id:
            return await self._peers.write_markers(leader_id, markers)
        results = await asyncio.gather(*map(self._writer.write, markers))
        return [error_code_of(error) for each in results for error in each]

    def _finish(self, group: Sequence[_Pending], codes: Sequence[int]) -> None:
        """Report the partitions that have the marker; send it to the others again."""
        written = set()
        for pending, code in zip(group, codes, strict=True):
            if code in OVERTAKEN:
                logger.warning(
                    "marker overtaken",
                    topic=pending.partition[0],
                    partition=pending.partition[1],
                    producer_id=pending.marker.producer_id,
                    epoch=pending.marker.epoch,
                    error=ErrorCode.of(code).name,
                )
            if code == ErrorCode.NONE or code in OVERTAKEN:
                written.add(pending.partition)
            else:
                self._retry(pending, ErrorCode.of(code).name)
        if written:
            self._pending_count -= len(written)
            group[0].on_written(frozenset(written))

    def _retry(self, pending: _Pending, reason: str) -> None:
        pending.tries += 1
        if pending.tries >= LOGGED_TRIES and pending.tries & (pending.tries - 1) == 0:
            logger.warning(
                "marker not written yet",
                topic=pending.partition[0],
                partition=pending.partition[1],
                producer_id=pending.marker.producer_id,
                tries=pending.tries,
                reason=reason,
            )
        seconds = min(RETRY_SECONDS_MIN * 2 ** min(pending.tries, 10), RETRY_SECONDS_MAX)

        def route() -> None:
            self._timers.discard(timer)
            self._route(pending)

        timer = asyncio.get_running_loop().call_later(seconds, route)
        self._timers.add(timer)

    def _check_leaderless(self, name: str) -> None:
        self._start(self._drop_deleted(name, self._leaderless.pop(name)))

    async def _drop_deleted(self, name: str, leaderless: Collection[_Pending]) -> None:
        """Drop the markers of partitions that do not exist any more, as the store says."""
        try:
            existing = await self._existing(name, {each.partition[1] for each in leaderless})
        except KafscaleError as error:
            for pending in leaderless:
                self._retry(pending, str(error))
            return
        for group in _by_transaction(leaderless):
            deleted = [each.partition for each in group if each.partition[1] not in existing]
            for pending in group:
                if pending.partition[1] in existing:
                    self._retry(pending, "the partition has no leader")
            if deleted:
                self._pending_count -= len(deleted)
                group[0].on_written(frozenset(deleted))

    async def _existing(self, name: str, partitions: Collection[int]) -> Collection[int]:
        """Those partitions of a topic that exist."""
        topic = self._topic_store.get(name)
        count = 0 if topic is None else topic.partitions
        if name == SHARDS_TOPIC or max(partitions) < count:
            return partitions
        entry = await self._store.get(keys.topic_config(name))
        if entry is not None:
            count = max(count, decode_topic(entry).partitions)
        return range(count)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("markers not sent", exc_info=error)


def _by_transaction(batch: Iterable[_Pending]) -> list[list[_Pending]]:
    grouped: dict[tuple[int, WriteMarkers], list[_Pending]] = defaultdict(list)
    for pending in batch:
        grouped[pending.coordinator_epoch, pending.marker].append(pending)
    return list(grouped.values())


def _marker(group: Sequence[_Pending]) -> Marker:
    first = group[0]
    return Marker(
        first.marker.producer_id,
        first.marker.epoch,
        first.coordinator_epoch,
        first.marker.is_commit,
        [pending.partition for pending in group],
        first.bumps_epoch,
    )
