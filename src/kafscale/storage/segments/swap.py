"""Swaps: replaces segments of a log by staged ones that a job derived from them.

A job writes to `{namespace}/_staging/{job}/{topic}/{partition}/` and sends a request to the owner,
because only owners change a partition. Staged segments span exactly a range of whole segments (see
`staging`). Compaction leaves offset gaps only inside batches, as in Kafka. The owner builds the
indexes.

The order makes a crash harmless, because a segment ends where the next one begins:

1. New segments are written from the last to the first, overwriting old ones with the same key. An
   old segment holds everything up to the next old one. A new segment holds everything up to the
   next new one, which already exists. So no offset is missing at any time.
2. Old segments without a new one of the same key are deleted from the first to the last. The
   segment before such an old one is new and holds all of its offsets.

An index that does not match its segment is worse than none, so the index is deleted before the
segment is overwritten. Meanwhile readers of the log's segments wait. A swap continues when its
requester disconnects. A swap interrupted by a crash can be requested again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

import msgspec

from kafscale.errors import DamagedObjectError, InvalidRequestError
from kafscale.observability.logging import get_logger
from kafscale.storage.bucket import list_segments
from kafscale.storage.formats import index, object_keys
from kafscale.storage.formats.index import Index
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.log_reader import LogReader
from kafscale.storage.segments.segment_writer import retry_while_open
from kafscale.storage.segments.staging import StagedSegment, Staging

logger = get_logger(__name__)


class SwapResult(msgspec.Struct, frozen=True, gc=False):
    """The offset range of a swap, and segment counts and sizes before and after."""

    start_offset: int
    end_offset: int
    count_before: int
    count_after: int
    bytes_before: int
    bytes_after: int


class _Swap(msgspec.Struct, frozen=True):
    """The old segments and the staged ones that replace them."""

    log: PartitionLog
    staging: Staging
    old: list[Segment]
    new: list[StagedSegment]

    @property
    def result(self) -> SwapResult:
        return SwapResult(
            self.old[0].base_offset,
            self.old[-1].next_offset,
            len(self.old),
            len(self.new),
            sum(segment.size_bytes for segment in self.old),
            sum(segment.size_bytes for segment in self.new),
        )


class Swapper:
    """Replaces segments by staged ones."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        reader: LogReader,
        *,
        index_interval_bytes: int,
        save_state: Callable[[PartitionLog], Awaitable[None]],
        random: Random,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._reader = reader
        self._index_interval_bytes = index_interval_bytes
        self._save_state = save_state
        self._random = random
        self._swaps: set[asyncio.Task[SwapResult]] = set()

    async def swap(self, log: PartitionLog, staged_prefix: str) -> SwapResult:
        """Swap in the segments staged under a prefix, or raise `InvalidRequestError`."""
        swap = asyncio.get_running_loop().create_task(self._swap(log, staged_prefix))
        self._swaps.add(swap)
        swap.add_done_callback(self._on_done)
        return await asyncio.shield(swap)

    def close(self) -> None:
        """Stop immediately, as in a crash."""
        for swap in self._swaps:
            swap.cancel()

    def _on_done(self, swap: "asyncio.Task[SwapResult]") -> None:
        self._swaps.discard(swap)
        if not swap.cancelled():
            swap.exception()  # Mark it as retrieved: the requester may have disconnected.

    async def _swap(self, log: PartitionLog, staged_prefix: str) -> SwapResult:
        staging = Staging(self._store, self._namespace, log, staged_prefix)
        async with log.segments_lock:
            log.check_open()
            log.check_not_paused()
            new = await staging.load()
            swap = _Swap(log, staging, staging.segments_to_replace(new), new)
            await self._delete_strays(log)
            await self._write(swap)
            # Readers of the tail must see the new content from now on.
            log.tail.evict_below(new[-1].next_offset)
            await self._delete_old(swap)
            await self._retry(log, "partition state", lambda: self._save_state(log))
        await self._store.delete(staging.keys)
        logger.info(
            "segments swapped",
            topic=log.topic,
            partition=log.partition,
            **msgspec.structs.asdict(swap.result),
        )
        return swap.result

    async def _delete_strays(self, log: PartitionLog) -> None:
        """Delete segments left by a failed swap; next to other new segments they would hide those.

        The known segments hold all records.
        """
        prefix = object_keys.partition_prefix(self._namespace, log.directory, log.partition)
        listed = {
            ref.base_offset async for ref, _ in list_segments(self._store, self._namespace, prefix)
        }
        known = {segment.base_offset for segment in log.segments}
        end_offset = log.segments.end_offset
        for base_offset in sorted(listed - known):
            if base_offset < end_offset:
                await self._save_state(log)  # Fails unless this broker owns the log.
                await self._store.delete(self._keys(log, base_offset))
                logger.warning("stray segment deleted", prefix=prefix, base_offset=base_offset)

    # --- writing ------------------------------------------------------------------------------

    async def _write(self, swap: _Swap) -> None:
        """Write all new segments, the last one first."""
        old_indexes = {old.base_offset: await self._index(swap.log, old) for old in swap.old}
        sections = {
            old.next_offset: entries.sections
            for old in swap.old
            if (entries := old_indexes[old.base_offset]) is not None
        }
        first = old_indexes[swap.old[0].base_offset]
        prior_max_timestamps = _prior_max_timestamps(
            first.prior_max_timestamp_ms if first else None, swap.new
        )
        for number in reversed(range(len(swap.new))):
            new = swap.new[number]
            data, segment = await swap.staging.read(new.key)
            if segment.footer.checksum != new.checksum:
                raise InvalidRequestError(f"{new.key} changed during the swap")
            entries = index.rebuild(
                segment.batches,
                self._index_interval_bytes,
                prior_max_timestamp_ms=prior_max_timestamps[number],
            )
            entries.sections.update(sections.get(new.next_offset, {}))
            await self._save_state(swap.log)  # Fails unless this broker owns the log.
            if new.base_offset in old_indexes:
                await self._replace(swap, number, data, entries)
            else:
                await self._put(swap.log, new.base_offset, data, entries)

    async def _replace(self, swap: _Swap, number: int, data: memoryview, entries: Index) -> None:
        """Overwrite an old segment, and make it and all later new ones visible to readers."""
        log, new = swap.log, swap.new[number]
        log.begin_swap()
        try:
            await self._put(log, new.base_offset, data, entries)
        except BaseException:
            log.close()  # The stored state is unknown; the next owner that opens the log reads it.
            raise
        log.segments.replace(
            [(later.base_offset, later.size_bytes) for later in swap.new[number:]],
            swap.new[-1].next_offset,
        )
        changed = [segment for segment in swap.old if segment.base_offset >= new.base_offset]
        self._reader.forget(
            *(key for segment in changed for key in self._keys(log, segment.base_offset))
        )
        log.end_swap()

    async def _put(
        self, log: PartitionLog, base_offset: int, data: memoryview, entries: Index
    ) -> None:
        index_key, segment_key = self._keys(log, base_offset)
        encoded = entries.encode()
        for key, write in (
            (index_key, lambda: self._store.delete([index_key])),
            (segment_key, lambda: self._store.put(segment_key, [data], create=False)),
            (index_key, lambda: self._store.put(index_key, [encoded], create=False)),
        ):
            await self._retry(log, key, write)

    async def _delete_old(self, swap: _Swap) -> None:
        """Delete old segments whose keys were not overwritten, one at a time, in order."""
        kept = {new.base_offset for new in swap.new}
        for segment in swap.old:
            if segment.base_offset not in kept:
                keys = self._keys(swap.log, segment.base_offset)
                await self._retry(swap.log, keys[0], lambda: self._store.delete(keys))  # noqa: B023

    async def _index(self, log: PartitionLog, segment: Segment) -> Index | None:
        try:
            return await self._reader.index(log, segment)
        except DamagedObjectError:
            return None  # The job may have recovered records from the damaged segment.

    async def _retry(
        self, log: PartitionLog, key: str, operation: Callable[[], Awaitable[None]]
    ) -> None:
        # A swap must not stop half-way.
        await retry_while_open(log, "swap step failed", key, operation, self._random)

    def _keys(self, log: PartitionLog, base_offset: int) -> tuple[str, str]:
        ref = (self._namespace, log.directory, log.partition, base_offset)
        return object_keys.index_key(*ref), object_keys.segment_key(*ref)


def _prior_max_timestamps(first_ms: int | None, new: Sequence[StagedSegment]) -> list[int | None]:
    """The largest timestamp in the log before each segment; None if unknown."""
    prior_max_timestamps: list[int | None] = []
    for one in new:
        prior_max_timestamps.append(first_ms)
        first_ms = None if first_ms is None else max(first_ms, one.max_timestamp_ms)
    return prior_max_timestamps
