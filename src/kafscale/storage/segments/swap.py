"""Swaps: replaces segments of a log by staged ones that a job derived from them.

A job writes to `{namespace}/_staging/{job}/{topic}/{partition}/` and sends a request to the owner,
because only owners change a partition. Staged segments span exactly a range of whole segments, and
each begins where one of those begins (see `staging`). Compaction leaves offset gaps only inside
batches, as in Kafka. The owner builds the indexes.

The order makes a crash harmless, because a segment ends where the next one begins:

1. New segments are written from the last to the first, each in place of the old one with the same
   key. An old segment holds everything up to the next old one. A new segment holds everything up to
   the next new one, which already exists. So no offset is missing at any time.
2. A new segment that holds the records of several is followed by a `merged-` object: from then on,
   readers ignore the other old ones.
3. These are deleted. The new segment before them holds all of their offsets.

Each step may also take effect late, or be that of a former owner:

* A segment is replaced only if it is still the one that was listed (If-Match).
* A key that was deleted is never used again, so a late deletion finds nothing that is needed.
* A late PUT of a deleted key is hidden by the `merged-` object, which stays as long as its segment.
* An index names the size of its segment; readers ignore one that does not fit.

Meanwhile readers of the log's segments wait. A swap ends if the store refuses its first write, as
on a full disk; apart from that, each step is repeated until it succeeds. A swap continues when its
requester disconnects. A swap interrupted by a crash can be requested again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Final, TypeVar

import msgspec

from kafscale.errors import (
    DamagedObjectError,
    InvalidRequestError,
    ObjectChangedError,
    ObjectExistsError,
    ObjectNotFoundError,
    OperatingError,
    StoreFullError,
    StoreUnavailableError,
)
from kafscale.observability.logging import get_logger
from kafscale.storage.bucket import list_objects
from kafscale.storage.formats import object_keys
from kafscale.storage.formats.index import Index
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.objects.comparison import is_equal
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.storage.read.log_reader import LogReader
from kafscale.storage.segments import swapped_transactions
from kafscale.storage.segments.segment_writer import retry_while_open
from kafscale.storage.segments.staging import (
    SegmentSource,
    StagedSegment,
    Staging,
    segments_to_replace,
)

logger = get_logger(__name__)

MERGED_CONTENT: Final = b"merged"
"""An object has at least one byte; the key says everything."""

Result = TypeVar("Result")


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
    source: SegmentSource
    old: list[Segment]
    new: list[StagedSegment]
    listed: Mapping[int, ObjectInfo]
    """The objects of the log's segments, by base offset."""
    outdated: list[str]
    """Keys of objects of replaced segments, and of `merged-` objects that this swap supersedes."""

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

    async def swap_staged(
        self, log: PartitionLog, staged_prefix: str, checksums: Sequence[int] = ()
    ) -> SwapResult:
        """Swap in the segments staged under a prefix, or raise `InvalidRequestError`."""
        staging = Staging(
            self._store,
            self._namespace,
            log,
            staged_prefix,
            checksums,
            index_interval_bytes=self._index_interval_bytes,
        )
        return await self.swap(log, staging)

    async def swap(self, log: PartitionLog, source: SegmentSource) -> SwapResult:
        """Swap in new segments, or raise `InvalidRequestError`."""
        swap = asyncio.get_running_loop().create_task(self._swap(log, source))
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

    async def _swap(self, log: PartitionLog, source: SegmentSource) -> SwapResult:
        async with log.segments_lock:
            log.check_open()
            log.check_not_paused()
            new = await source.load()
            swap = await self._prepare(log, source, new)
            await self._write(swap)
            # Readers of the tail must see the new content from now on.
            log.tail.evict_below(new[-1].next_offset)
            await self._delete_old(swap)
            await self._retry(log, "partition state", lambda: self._save_state(log))
        if source.keys:
            await self._store.delete(source.keys)
        logger.info(
            "segments swapped",
            topic=log.topic,
            partition=log.partition,
            **msgspec.structs.asdict(swap.result),
        )
        return swap.result

    async def _prepare(
        self, log: PartitionLog, source: SegmentSource, new: list[StagedSegment]
    ) -> _Swap:
        """List the partition, and find what the swap replaces and what earlier ones have left."""
        old = segments_to_replace(log, new)
        # Read before the listing: segments that are rolled meanwhile are not left by a crash.
        end_offset = log.segments.end_offset
        listed: dict[int, ObjectInfo] = {}
        outdated: list[str] = []
        prefix = object_keys.partition_prefix(self._namespace, log.directory, log.partition)
        async for ref, item in list_objects(self._store, self._namespace, prefix):
            match ref:
                case object_keys.ReplacedRef():
                    outdated.append(item.key)
                case object_keys.MergedRef(base_offset=start, end_offset=end):
                    if any(_contains(each, start, end) for each in new):
                        outdated.append(item.key)
                case object_keys.SegmentRef(base_offset=base_offset, is_index=is_index):
                    if base_offset < end_offset and not log.segments.has(base_offset):
                        outdated.append(item.key)  # A crash left it there.
                    elif not is_index:
                        listed[base_offset] = item
        return _Swap(log, source, old, new, listed, outdated)

    # --- writing ------------------------------------------------------------------------------

    async def _write(self, swap: _Swap) -> None:
        """Write all new segments, the last one first."""
        old_indexes = {old.base_offset: await self._index(swap.log, old) for old in swap.old}
        sections = {
            old.next_offset: entries.sections
            for old in swap.old
            if (entries := old_indexes[old.base_offset]) is not None
        }
        transactions = await swapped_transactions.read_sections(self._reader, swap.log, swap.old)
        first = old_indexes[swap.old[0].base_offset]
        prior_max_timestamps = _prior_max_timestamps(
            first.prior_max_timestamp_ms if first else None, swap.new
        )
        for number in reversed(range(len(swap.new))):
            new = swap.new[number]
            data, entries = await swap.source.read(new)
            entries.prior_max_timestamp_ms = prior_max_timestamps[number]
            entries.sections.update(sections.get(new.next_offset, {}))
            replaced = [
                transactions.get(old.base_offset)
                for old in swap.old
                if new.base_offset <= old.base_offset < new.next_offset
            ]
            await swapped_transactions.update(entries.sections, replaced, data)
            await self._save_state(swap.log)  # Fails unless this broker owns the log.
            await self._replace(swap, number, data, entries)

    async def _replace(self, swap: _Swap, number: int, data: memoryview, entries: Index) -> None:
        """Overwrite an old segment, and make it and all later new ones visible to readers."""
        log, new = swap.log, swap.new[number]
        index_key, segment_key = self._keys(log, new.base_offset)
        encoded = entries.encode()
        log.begin_swap()
        try:
            await self._put_segment(swap, segment_key, new.base_offset, data)
            await self._retry(
                log, index_key, lambda: self._store.put(index_key, [encoded], create=False)
            )
            log.segments.replace(
                [(later.base_offset, later.size_bytes) for later in swap.new[number:]],
                swap.new[-1].next_offset,
            )
        finally:
            changed = [each for each in swap.old if each.base_offset >= new.base_offset]
            self._reader.forget(
                *(key for segment in changed for key in self._keys(log, segment.base_offset))
            )
            log.end_swap()
        if any(new.base_offset < each.base_offset < new.next_offset for each in swap.old):
            await self._put_merged(log, new)

    async def _put_segment(self, swap: _Swap, key: str, base_offset: int, data: memoryview) -> None:
        """Overwrite a segment, unless it has changed since it was listed."""
        listed = swap.listed.get(base_offset)
        if listed is None:
            raise InvalidRequestError(f"{key} does not exist")

        async def put() -> None:
            try:
                await self._store.replace(key, [data], listed.etag)
            except ObjectChangedError:
                if not await self._is_stored(key, data):
                    raise InvalidRequestError(f"{key} changed during the swap") from None

        if base_offset == swap.new[-1].base_offset:
            # Nothing is replaced yet, so the swap ends if the store refuses to: readers wait, and
            # on a full disk retention waits for the lock.
            try:
                await put()
            except OperatingError as error:
                if _is_refusal(error) and await self._is_unchanged(key, listed):
                    raise
            else:
                return
        await self._retry(swap.log, key, put)

    async def _is_unchanged(self, key: str, listed: ObjectInfo) -> bool:
        """Whether no earlier try has taken effect."""
        try:
            return (await self._store.head(key)).etag == listed.etag
        except OperatingError:
            return False

    async def _is_stored(self, key: str, data: memoryview) -> bool:
        """Whether an earlier try has stored the data."""
        try:
            stored = await self._store.get(key)
        except ObjectNotFoundError:
            return False
        return await is_equal(stored, [data])

    async def _put_merged(self, log: PartitionLog, new: StagedSegment) -> None:
        """Let readers ignore the segments whose records a new one holds."""
        key = object_keys.merged_key(
            self._namespace, log.directory, log.partition, new.base_offset, new.next_offset
        )

        async def put() -> None:
            # An earlier try, or an interrupted swap, may have written it.
            with suppress(ObjectExistsError):
                await self._store.put(key, [MERGED_CONTENT])

        await self._retry(log, key, put)

    async def _delete_old(self, swap: _Swap) -> None:
        """Delete what is hidden by `merged-` objects now, and those that this swap supersedes."""
        kept = {new.base_offset for new in swap.new}
        keys = swap.outdated + [
            key
            for segment in swap.old
            if segment.base_offset not in kept
            for key in self._keys(swap.log, segment.base_offset)
        ]
        if keys:
            await self._retry(swap.log, keys[0], lambda: self._store.delete(keys))

    async def _index(self, log: PartitionLog, segment: Segment) -> Index | None:
        try:
            return await self._reader.index(log, segment)
        except DamagedObjectError:
            return None  # The job may have recovered records from the damaged segment.

    async def _retry(
        self, log: PartitionLog, key: str, operation: Callable[[], Awaitable[Result]]
    ) -> Result:
        # A swap must not stop half-way.
        return await retry_while_open(log, "swap step failed", key, operation, self._random)

    def _keys(self, log: PartitionLog, base_offset: int) -> tuple[str, str]:
        ref = (self._namespace, log.directory, log.partition, base_offset)
        return object_keys.index_key(*ref), object_keys.segment_key(*ref)


def _is_refusal(error: OperatingError) -> bool:
    """Whether a write had no effect, and will have none."""
    return isinstance(error, StoreFullError) or not isinstance(error, StoreUnavailableError)


def _contains(new: StagedSegment, start_offset: int, end_offset: int) -> bool:
    """Whether a range of merged segments is part of a new segment, and not the same."""
    is_within = new.base_offset <= start_offset and end_offset <= new.next_offset
    return is_within and (start_offset, end_offset) != (new.base_offset, new.next_offset)


def _prior_max_timestamps(first_ms: int | None, new: Sequence[StagedSegment]) -> list[int | None]:
    """The largest timestamp in the log before each segment; None if unknown."""
    prior_max_timestamps: list[int | None] = []
    for one in new:
        prior_max_timestamps.append(first_ms)
        first_ms = None if first_ms is None else max(first_ms, one.max_timestamp_ms)
    return prior_max_timestamps
