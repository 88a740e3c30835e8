"""Fetch: v0-18.

Behaviour:
* Complete batches as they are stored, from the one with the requested offset up to the high
  watermark, or up to the last stable offset for readers of committed records. The first batch of a
  response is sent whatever its size, so that every reader makes progress.
* A response is sent at once if it has `min_bytes`, an error, or nothing to wait for; else when
  there is enough, after `max_wait_ms`, or when the broker shuts down. Waiting does not poll: an
  advancing high watermark updates what is available of its partition, and of no other.
* The offset -1 stands for the high watermark, -2 for the log start, at the time of the request.
* Records in memory are read in the requested order; older records of several partitions are fetched
  from the object store concurrently.
* Requires READ on each topic, else TOPIC_AUTHORIZATION_FAILED, whether it exists or not. A client
  that fetches as a replica requires CLUSTER_ACTION on the cluster instead, with the same error.
* Problems with the object store are KAFKA_STORAGE_ERROR, which all clients retry; at once while the
  store is known to be unavailable. A damaged batch is CORRUPT_MESSAGE; batches before it are sent.

Version notes:
* v0-3: batches are converted to message sets (magic 0 up to v1, magic 1 after that). Control
  records are left out; if there is nothing else, the empty result is sent at once, as in Kafka.
* v4+: isolation levels, the last stable offset and the aborted transactions.
* v7+: incremental sessions (KIP-227), see `fetch_sessions`.
* v10+: zstd; before, a zstd batch is refused with UNSUPPORTED_COMPRESSION_TYPE.
* v12+: a broker that is not the leader returns the leader; v16+: and its address.
* v13+: topics are identified by id.
"""

import asyncio
from collections.abc import Awaitable

from kafscale.broker.fetch_sessions.cache import CachedPartition, FetchContext
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security.permissions import authorization_error
from kafscale.broker.shared.available_bytes import AvailableBytes
from kafscale.broker.shared.fetch_conversion import BATCHES_SINCE, ZSTD_SINCE, check_codecs, convert
from kafscale.broker.shared.fetch_permissions import NONE_DENIED, denied_topics
from kafscale.broker.shared.fetch_reads import (
    READ_COMMITTED,
    FetchedRecords,
    from_segments,
    from_tail,
    last_stable_offset,
    unread,
)
from kafscale.broker.shared.partition_lookup import (
    WRONG_LEADER_ERRORS,
    ReadableLog,
    check_leader_epoch,
    current_leader,
    find_readable,
    leader_nodes,
)
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import ResourceType
from kafscale.metadata.schema.model import NO_BROKER
from kafscale.observability.logging import get_logger
from kafscale.protocol.messages.fetch import (
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from kafscale.storage.log.partition_log import PartitionLog

logger = get_logger(__name__)

LATEST, EARLIEST = -1, -2
SESSIONS_SINCE = 7


def handle(
    context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    now_ms = context.received_ms
    session = context.broker.fetch_sessions.begin(request, context.version, now_ms)
    fetch = Fetch(context, request, session)
    fetch.authorize()
    fetch.read_memory()
    if not fetch.cold and fetch.is_enough:
        return fetch.build_response(now_ms)
    context.client.is_reading_segments = bool(fetch.cold)
    return _wait(context, request, fetch)


def error_response(
    context: RequestContext, request: FetchRequest, error: KafscaleError
) -> FetchResponse:
    """The top-level error; before v7, the same for every partition."""
    if context.version >= SESSIONS_SINCE:
        return FetchResponse(error_code=error.code)
    return FetchResponse(
        topics=[
            FetchedTopic(
                name=topic.name,
                partitions=[_failed(partition.index, error) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


async def _wait(context: RequestContext, request: FetchRequest, fetch: "Fetch") -> FetchResponse:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.max_wait_ms / 1000
    task = asyncio.current_task()
    assert task is not None
    # After the callback of the dispatcher, which was added first: the connection counts it then.
    task.add_done_callback(lambda _: fetch.reserve(0))
    try:
        await fetch.read_store()
    finally:
        context.client.is_reading_segments = False
    while not fetch.is_enough and loop.time() < deadline and not context.shutdown.is_set:
        await fetch.wait_for_more(deadline)
        fetch.authorize()
        fetch.read_memory()
        await fetch.read_store()
    return fetch.build_response(context.broker.clock())


class Fetch:
    """One fetch in progress: its partitions, and what was read of them."""

    __slots__ = (
        "_bytes_left",
        "_context",
        "_denied",
        "_is_committed",
        "_logs",
        "_min_bytes",
        "_missed",
        "_request",
        "_reserved_bytes",
        "_size_bytes",
        "cold",
        "results",
        "session",
    )

    def __init__(
        self, context: RequestContext, request: FetchRequest, session: FetchContext
    ) -> None:
        self._context = context
        self._denied = NONE_DENIED
        self._request = request
        self._is_committed = request.isolation_level == READ_COMMITTED
        self._logs: list[ReadableLog | None] = []
        self._missed: list[bool] = []
        """Which partitions had to be read from the object store."""
        self._bytes_left = 0
        self._min_bytes = 0
        self._reserved_bytes = 0
        """What is counted in the budget of responses."""
        self._size_bytes = 0
        self.session = session
        self.results: list[FetchedPartition] = []
        self.cold: list[int] = []
        """The partitions that are still to be read from the object store, or converted."""

    @property
    def is_enough(self) -> bool:
        """Whether to respond now."""
        return (
            self._size_bytes >= self._min_bytes
            or self._request.max_wait_ms <= 0
            or not self.results
            or any(result.error_code for result in self.results)
        )

    # --- reading ------------------------------------------------------------------------------

    def authorize(self) -> None:
        """Check which topics the client may read now: it may have waited for a long time."""
        if self._context.broker.authorizer is not None:
            self._denied = denied_topics(self._context, self._request, self.session.partitions)

    def read_memory(self) -> None:
        """Start the results with what is in the tails."""
        broker = self._context.broker
        bytes_max = min(self._request.max_bytes, broker.config.network.fetch_bytes_max)
        self._bytes_left = broker.responses.limit(bytes_max)
        if not broker.quotas.is_idle:
            self._bytes_left = broker.quotas.fetch_bytes_max(self._context, self._bytes_left)
        # A fetch that may not return as much as it asked for does not wait for more.
        self._min_bytes = self._request.min_bytes if self._bytes_left == bytes_max else 1
        self._size_bytes = 0
        self.results = []
        self._logs = []
        self._missed = [False] * len(self.session.partitions)
        self.cold = []
        for number, partition in enumerate(self.session.partitions):
            log = None
            try:
                log = self._find(partition)
                _resolve_offset(partition, log)
                log.check_readable(partition.request.offset)
                result = self._result(log)
                records = None
                if log.in_tail(partition.request.offset):
                    records = self._from_tail(partition, log)
                if records is None or (records.slices and self._context.version < BATCHES_SINCE):
                    self.cold.append(number)
                else:
                    self._fill(result, records)
            except KafscaleError as error:
                result = _failed(partition.request.index, error)
            self._logs.append(log)
            self.results.append(result)

    async def read_store(self) -> None:
        """Complete the results with what is in segments, several partitions at a time."""
        if not self.cold:
            return
        # Other fetches may have begun since the limit was set.
        limit_bytes = self._context.broker.responses.limit(self._bytes_left)
        if limit_bytes < self._bytes_left:
            self._bytes_left, self._min_bytes = limit_bytes, 1
        self.reserve(self._size_bytes + max(self._bytes_left, 0))
        while self.cold and self._bytes_left > 0:
            chosen: list[int] = []
            planned_bytes = 0
            while self.cold and planned_bytes < self._bytes_left:
                chosen.append(self.cold.pop(0))
                planned_bytes += self.session.partitions[chosen[-1]].request.max_bytes
            await asyncio.gather(*(self._read_cold(number) for number in chosen))
        self.cold = []
        self.reserve(self._size_bytes)

    def reserve(self, size_bytes: int) -> None:
        """Count the response in the budget."""
        self._context.broker.responses.used_bytes += size_bytes - self._reserved_bytes
        self._reserved_bytes = size_bytes

    async def _read_cold(self, number: int) -> None:
        partition, log = self.session.partitions[number], self._logs[number]
        assert log is not None
        bytes_max = min(partition.request.max_bytes, self._bytes_left)
        try:
            if isinstance(log, PartitionLog):
                records = await self._read_log(number, log, bytes_max)
            else:
                records = self._from_tail(partition, log)
            version, offset = self._context.version, partition.request.offset
            if records.slices and version < BATCHES_SINCE:
                converted = await convert(records.slices, version, offset, bytes_max)
                self._min_bytes = self._min_bytes if any(converted) else 0
                records = FetchedRecords(converted, records.aborted)
            result = self._result(log)
            if sum(map(len, records.slices)) <= self._bytes_left or self._size_bytes == 0:
                self._fill(result, records)
            self.results[number] = result
        except KafscaleError as error:
            self.results[number] = _failed(partition.request.index, error)
        except Exception:
            # A boundary: the other partitions of this request are read nevertheless.
            logger.exception("fetch failed", topic=log.topic, partition=log.partition)
            self.results[number] = _failed(partition.request.index, KafscaleError())

    async def _read_log(self, number: int, log: PartitionLog, bytes_max: int) -> FetchedRecords:
        offset = self.session.partitions[number].request.offset
        reader = self._context.broker.storage.reader
        self._missed[number] = not reader.is_cached(log, offset)
        if self._missed[number]:
            self._context.broker.health.check_readable()
        is_first = self._size_bytes == 0
        return await from_segments(
            reader, log, offset, bytes_max, first=is_first, is_committed=self._is_committed
        )

    def _from_tail(self, partition: CachedPartition, log: ReadableLog) -> FetchedRecords:
        bytes_max = min(partition.request.max_bytes, self._bytes_left)
        is_first = self._size_bytes == 0
        if bytes_max <= 0 and not is_first:
            return unread(is_committed=self._is_committed)
        return from_tail(
            log,
            partition.request.offset,
            bytes_max,
            first=is_first,
            is_committed=self._is_committed,
        )

    def _fill(self, result: FetchedPartition, records: FetchedRecords) -> None:
        slices = records.slices
        if slices and BATCHES_SINCE <= self._context.version < ZSTD_SINCE:
            check_codecs(slices)
        size_bytes = sum(map(len, slices))
        self._size_bytes += size_bytes
        self._bytes_left -= size_bytes
        result.records = slices
        result.aborted_transactions = records.aborted

    def _result(self, log: ReadableLog) -> FetchedPartition:
        return FetchedPartition(
            index=log.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=last_stable_offset(log),
            log_start_offset=log.start_offset,
            aborted_transactions=[] if self._is_committed else None,
            records=[],
        )

    def _find(self, partition: CachedPartition) -> ReadableLog:
        if self._denied and partition.key[0] in self._denied:
            name = partition.name or partition.topic_id.hex()
            raise authorization_error(ResourceType.TOPIC, name)
        index = partition.request.index
        log = find_readable(self._context.broker, partition.name, partition.topic_id, index)
        check_leader_epoch(log, partition.request.current_leader_epoch)
        return log

    def build_response(self, now_ms: int) -> FetchResponse:
        """Build the response, and count it in the metrics."""
        metrics = self._context.broker.metrics
        seconds = metrics.timer() - self._context.started
        topics: dict[str, bool] = {}
        for result, log, missed in zip(self.results, self._logs, self._missed, strict=True):
            if log is None:
                continue
            topics[log.topic] = topics.get(log.topic, True) and not missed
            counters = metrics.partition(log.topic, log.partition)
            if result.error_code:
                counters.fetches_failed += 1
                continue
            counters.fetches_succeeded += 1
            if result.records:
                counters.fetch_bytes += sum(map(len, result.records))
                counters.cache_misses += missed
                counters.cache_hits += not missed
        for topic, hit in topics.items():
            metrics.topic(topic).fetched(hit, seconds)
        leader_ids = [
            self._set_current_leader(number)
            for number, result in enumerate(self.results)
            if result.error_code in WRONG_LEADER_ERRORS
        ]
        response = self.session.build_response(self.results, now_ms)
        if leader_ids:
            response.node_endpoints = [
                NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
                for node in leader_nodes(self._context, leader_ids)
            ]
        return response

    def _set_current_leader(self, number: int) -> int:
        partition = self.session.partitions[number]
        leader = current_leader(
            self._context, partition.name, partition.topic_id, partition.request.index
        )
        if leader is None:
            return NO_BROKER
        self.results[number].current_leader = LeaderIdAndEpoch(
            leader_id=leader[0], leader_epoch=leader[1]
        )
        return leader[0]

    # --- waiting ------------------------------------------------------------------------------

    async def wait_for_more(self, deadline: float) -> None:
        """Wait until there is enough to read, an error, a shutdown, or the deadline."""
        loop = asyncio.get_running_loop()
        enough: asyncio.Future[None] = loop.create_future()

        def stop_waiting() -> None:
            if not enough.done():
                enough.set_result(None)

        requested = (partition.request for partition in self.session.partitions)
        timer = loop.call_at(deadline, stop_waiting)
        self._context.shutdown.add_callback(stop_waiting)
        try:
            with AvailableBytes(
                zip(requested, self._logs, strict=True),
                self._request.min_bytes,
                enough,
                is_committed=self._is_committed,
            ):
                await enough
        finally:
            timer.cancel()
            self._context.shutdown.remove_callback(stop_waiting)


def _resolve_offset(partition: CachedPartition, log: ReadableLog) -> None:
    """Replace an offset that stands for a bound, also in the session, so that waiting keeps it."""
    if partition.request.offset == EARLIEST:
        partition.request.offset = log.start_offset
    elif partition.request.offset == LATEST:
        partition.request.offset = log.high_watermark


def _failed(index: int, error: KafscaleError) -> FetchedPartition:
    return FetchedPartition(
        index=index, error_code=error.code, high_watermark=-1, aborted_transactions=None, records=[]
    )
