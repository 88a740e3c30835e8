"""`CompactionScheduler`: decides which log of this broker is compacted next.

As in Kafka, it is the one with the largest share of dirty bytes among those that are due. A broker
may own tens of thousands of logs, so their order is found once for all that are compacted within an
interval. A log whose compaction fails is tried again after a pause, and never stops the broker.
"""

import asyncio
from collections.abc import Callable, Iterable
from operator import itemgetter
from random import Random
from typing import Final

import msgspec

from kafscale.aio.backoff import Backoff
from kafscale.aio.pacer import Pacer
from kafscale.errors import DamagedObjectError, KafscaleError
from kafscale.observability.logging import get_logger
from kafscale.records.batch import HEADER, HEADER_BYTES, BatchHeader
from kafscale.storage.compaction.checkpoint import read_checkpoint
from kafscale.storage.compaction.compactor import (
    AbortedTransactions,
    CompactionResult,
    Compactor,
    Dirty,
    Swap,
)
from kafscale.storage.compaction.rules import CompactionRules
from kafscale.storage.compaction.worker_process import Worker
from kafscale.storage.counters import StorageCounters
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.segments.newest_timestamps import NewestTimestamps

logger = get_logger(__name__)

RETRY_SECONDS: Final = 30.0
RETRY_SECONDS_MAX: Final = 3600.0

SEGMENTS_MAX: Final = 16
"""How many segments' timestamps are read at once."""

LOGS_PER_TURN: Final = 100


class CompactionSettings(msgspec.Struct, frozen=True):
    """Settings of compaction."""

    interval_ms: int
    memory_bytes_max: int
    bytes_per_second: int


class _LogState(msgspec.Struct):
    """What is known of a compacted log."""

    clean_end: int
    backoff: Backoff
    retry_at: float = 0.0
    dirty_since: tuple[int, int] | None = None
    """The base offset of the first dirty segment, and the time of its first batch."""
    ratio: float = 0.0


class _Due(msgspec.Struct, frozen=True):
    log: PartitionLog
    rules: CompactionRules
    dirty: Dirty


class CompactionScheduler:
    """Compacts the logs of a broker in the background."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        worker: Worker,
        newest_timestamps: NewestTimestamps,
        settings: CompactionSettings,
        *,
        index_interval_bytes: int,
        logs: Callable[[], Iterable[PartitionLog]],
        swap: Swap,
        aborted: AbortedTransactions,
        clock: Callable[[], int],
        counters: StorageCounters,
        random: Random,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._worker = worker
        self._newest_timestamps = newest_timestamps
        self._interval_seconds = settings.interval_ms / 1000
        self._logs = logs
        self._clock = clock
        self._counters = counters
        self._random = random
        self._compactor = Compactor(
            store,
            namespace,
            worker,
            swap=swap,
            aborted=aborted,
            memory_bytes_max=settings.memory_bytes_max,
            bytes_per_second=settings.bytes_per_second,
            index_interval_bytes=index_interval_bytes,
            clock=clock,
            counters=counters,
        )
        self._states: dict[PartitionLog, _LogState] = {}

    def dirty_ratios(self) -> list[tuple[PartitionLog, float]]:
        """The dirty ratio of every compacted log at the last check."""
        return [(log, state.ratio) for log, state in self._states.items() if not log.closed]

    def close(self) -> None:
        self._worker.close()

    async def run(self) -> None:
        """Compact logs until cancelled."""
        try:
            while True:
                await asyncio.sleep(self._interval_seconds)
                await self.compact_due()
        finally:
            self.close()

    async def compact_due(self) -> None:
        """Compact every log that is due, each at most once."""
        done: set[PartitionLog] = set()
        time = asyncio.get_running_loop().time
        try:
            while ordered := await self._choose(done):
                until = time() + self._interval_seconds
                for log in ordered:
                    done.add(log)
                    # Others were compacted since the order was found: this one may have changed.
                    if (due := await self._due(log)) is not None:
                        await self._compact(due)
                    if time() >= until:
                        break
        finally:
            self._worker.close()  # It is started again when it is needed.

    async def _compact(self, due: _Due) -> None:
        log, state = due.log, self._states[due.log]
        facts = {"topic": log.topic, "partition": log.partition}
        started_ms = self._clock()
        try:
            result = await self._compactor.compact(log, due.rules, due.dirty)
        except KafscaleError as error:
            if not log.closed:  # Otherwise another broker leads the partition now.
                self._note_failure(state)
                logger.warning("log not compacted", **facts, error=str(error))
        except Exception:
            # A boundary: an error of one log must not stop the compaction of the others.
            self._note_failure(state)
            logger.exception("log not compacted", **facts)
        else:
            state.backoff.reset()
            state.clean_end = result.clean_end
            self._count(result)
            logger.info(
                "log compacted",
                **facts,
                **msgspec.structs.asdict(result),
                duration=round((self._clock() - started_ms) / 1000, 3),
            )

    def _note_failure(self, state: _LogState) -> None:
        self._counters.compaction.failures += 1
        state.retry_at = asyncio.get_running_loop().time() + state.backoff.next_seconds()

    def _count(self, result: CompactionResult) -> None:
        counters = self._counters.compaction
        counters.runs += 1
        counters.records_removed += result.records_removed
        counters.bytes_reclaimed += max(result.bytes_before - result.bytes_after, 0)

    # --- choice -----------------------------------------------------------------------------------

    async def _choose(self, done: set[PartitionLog]) -> list[PartitionLog]:
        """The logs that are due, those with the largest shares of dirty bytes first."""
        await self._update_states()
        pacer = Pacer(LOGS_PER_TURN)
        ordered: list[tuple[float, PartitionLog]] = []
        for log in list(self._states):
            await pacer.step()
            if log not in done and (due := await self._due(log)) is not None:
                ordered.append((due.dirty.ratio, due.log))
        ordered.sort(key=itemgetter(0), reverse=True)
        return [log for _, log in ordered]

    async def _due(self, log: PartitionLog) -> _Due | None:
        """What is to be compacted of a log, if it is due."""
        state, rules = self._states.get(log), log.settings.compaction
        now = asyncio.get_running_loop().time()
        if state is None or log.closed or rules is None or now < state.retry_at:
            return None
        try:
            dirty = await self._dirty(log, state, rules)
            since_ms = await self._dirty_since_ms(log, state) if rules.has_lag_max else None
        except KafscaleError as error:
            self._note_failure(state)
            facts = {"topic": log.topic, "partition": log.partition}
            logger.warning("log not checked for compaction", **facts, error=str(error))
            return None
        state.ratio = dirty.ratio
        has_dirty = dirty.clean_end < dirty.cleanable_end
        is_due = has_dirty and rules.is_due(dirty.ratio, since_ms, self._clock())
        return _Due(log, rules, dirty) if is_due else None

    async def _update_states(self) -> None:
        """Forget closed logs, and read the clean ends of new ones."""
        pacer = Pacer(LOGS_PER_TURN)
        for log in list(self._states):
            await pacer.step()
            if log.closed or log.settings.compaction is None:
                del self._states[log]
        ends: dict[bytes, dict[int, int]] = {}
        for log in list(self._logs()):
            await pacer.step()
            if log.settings.compaction is None or log in self._states:
                continue
            try:
                if log.topic_id not in ends:
                    ends[log.topic_id] = await read_checkpoint(
                        self._store, self._namespace, log.topic, log.topic_id
                    )
            except KafscaleError as error:
                logger.warning("clean offsets not read", topic=log.topic, error=str(error))
                continue
            backoff = Backoff(
                self._random, first_seconds=RETRY_SECONDS, max_seconds=RETRY_SECONDS_MAX
            )
            self._states[log] = _LogState(ends[log.topic_id].get(log.partition, 0), backoff)

    async def _dirty(self, log: PartitionLog, state: _LogState, rules: CompactionRules) -> Dirty:
        segments = log.segments
        clean_end = min(max(state.clean_end, log.start_offset), segments.end_offset)
        if not len(segments) or clean_end >= segments.end_offset:
            return Dirty(clean_end, clean_end, 0.0)
        end = len(segments)
        if rules.lag_ms_min:
            end = await self._head_start(
                log, segments.find(clean_end), self._clock() - rules.lag_ms_min
            )
        first, start = segments.find(clean_end), segments.find(log.start_offset)
        end = min(end, len(segments))
        stable_offset = log.last_stable_offset
        if stable_offset < segments.end_offset:
            # The first segment with an offset that may still be aborted is not rewritten.
            end = min(end, segments.find(max(stable_offset, log.start_offset)))
        if end <= first:
            return Dirty(clean_end, clean_end, 0.0)
        dirty_bytes = segments.bytes_between(first, end)
        ratio = dirty_bytes / segments.bytes_between(start, end)
        return Dirty(clean_end, segments[end - 1].next_offset, ratio)

    async def _head_start(self, log: PartitionLog, number: int, limit_ms: int) -> int:
        """The index of the first segment from `number` on with a record after a time."""
        segments = log.segments
        while number < len(segments):
            newest_ms = segments.newest_ms(number)
            if newest_ms is None:
                await self._newest_timestamps.load(log, segments.some(number, SEGMENTS_MAX))
                newest_ms = segments.newest_ms(number) if number < len(segments) else None
                if newest_ms is None:
                    break  # It was replaced or deleted meanwhile.
            if newest_ms > limit_ms:
                break
            number += 1
        return number

    async def _dirty_since_ms(self, log: PartitionLog, state: _LogState) -> int | None:
        """The time of the first batch of the first dirty segment."""
        if not len(log.segments) or state.clean_end >= log.segments.end_offset:
            return None
        first = log.segments[log.segments.find(max(state.clean_end, log.start_offset))]
        if state.dirty_since is None or state.dirty_since[0] != first.base_offset:
            key = object_keys.segment_key(
                self._namespace, log.directory, log.partition, first.base_offset
            )
            start = segment.HEADER_BYTES
            head = await self._store.get_range(key, start, start + HEADER_BYTES)
            if len(head) != HEADER_BYTES:
                raise DamagedObjectError(key, f"it ends within its first batch, at {len(head)}")
            header = BatchHeader._make(HEADER.unpack_from(head))
            state.dirty_since = (first.base_offset, header.max_timestamp_ms)
        return state.dirty_since[1]
