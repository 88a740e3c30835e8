"""Swapping: segments that a job has made take the place of those that it made them from.

A job writes to `{namespace}/_staging/{job}/{topic}/{partition}/` and asks the owner: only owners
change a partition. What is staged spans exactly a run of whole segments (see `staging`). Compaction
leaves its gaps inside of batches, whose spans of offsets stay, as in Kafka. Indexes are made here.

The order keeps every crash harmless, because a segment ends where the next one begins:

1. New segments are written from the last to the first, over whatever lies there. What is old holds
   all up to the next old one, what is new all up to the next new one, which is there already: so
   whichever comes next, nothing is missing in between.
2. What is old and has no successor of the same name is deleted from the first to the last: then
   what lies before is always new, and holds all of it.

An index that fits another segment would be worse than none: it goes before its segment is written
over. While that happens, readers of the log's segments wait. A swap goes on although nobody waits
for it any more; one that a crash has cut short can be asked for again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

import msgspec

from kafscale.aio.backoff import Backoff
from kafscale.errors import DamagedObjectError, InvalidRequestError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.storage.formats import index, object_keys
from kafscale.storage.formats.index import Index
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.log_reader import LogReader
from kafscale.storage.segments.staging import StagedSegment, Staging

log = get_logger(__name__)


class SwapResult(msgspec.Struct, frozen=True, gc=False):
    """What a swap has done."""

    start_offset: int
    end_offset: int
    count_before: int
    count_after: int
    bytes_before: int
    bytes_after: int


class _Swap(msgspec.Struct, frozen=True):
    """What takes whose place."""

    partition: PartitionLog
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
            sum(found.size_bytes for found in self.old),
            sum(found.size_bytes for found in self.new),
        )


class Swapper:
    """Puts staged segments in the place of others."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        reader: LogReader,
        *,
        index_interval_bytes: int,
        save: Callable[[PartitionLog], Awaitable[None]],
        random: Random,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._reader = reader
        self._index_interval_bytes = index_interval_bytes
        self._save = save
        self._random = random
        self._swaps: set[asyncio.Task[SwapResult]] = set()

    async def swap(self, partition: PartitionLog, staged_prefix: str) -> SwapResult:
        """Swap in what is staged under a prefix, or raise `InvalidRequestError`."""
        swap = asyncio.get_running_loop().create_task(self._swap(partition, staged_prefix))
        self._swaps.add(swap)
        swap.add_done_callback(self._on_done)
        return await asyncio.shield(swap)

    def close(self) -> None:
        """Stop at once, as a crash would."""
        for swap in self._swaps:
            swap.cancel()

    def _on_done(self, swap: "asyncio.Task[SwapResult]") -> None:
        self._swaps.discard(swap)
        if not swap.cancelled():
            swap.exception()  # Perhaps nobody waits for it any more.

    async def _swap(self, partition: PartitionLog, staged_prefix: str) -> SwapResult:
        staging = Staging(self._store, self._namespace, partition, staged_prefix)
        async with partition.pruning:
            partition.check_open()
            partition.check_kept()
            new = await staging.look()
            swap = _Swap(partition, staging, staging.replaced(new), new)
            await self._delete_strays(partition)
            await self._write(swap)
            # Who reads what is newest in memory sees what the segments hold from now on.
            partition.tail.evict_below(new[-1].next_offset)
            await self._delete_old(swap)
            await self._retry(partition, "partition state", lambda: self._save(partition))
        await self._store.delete(staging.keys)
        log.info(
            "segments swapped",
            topic=partition.topic,
            partition=partition.partition,
            **msgspec.structs.asdict(swap.result),
        )
        return swap.result

    async def _delete_strays(self, partition: PartitionLog) -> None:
        """Delete what a swap that failed has left; beside other new segments it would hide them.

        The segments that are known hold all records, so nobody needs it.
        """
        prefix = object_keys.partition_prefix(self._namespace, partition.topic, partition.partition)
        strays = []
        async for chunk in self._store.list(prefix):
            for item in chunk:
                place = object_keys.parse_segment(self._namespace, item.key)
                if place is not None and not place.is_index:
                    strays.append(place.base_offset)
        known = {found.base_offset for found in partition.segments}
        end_offset = partition.segments.end_offset
        for base_offset in sorted(set(strays) - known):
            if base_offset < end_offset:
                await self._save(partition)  # Only an owner gets beyond this.
                await self._store.delete(self._keys(partition, base_offset))
                log.warning("stray segment deleted", prefix=prefix, base_offset=base_offset)

    # --- writing ------------------------------------------------------------------------------

    async def _write(self, swap: _Swap) -> None:
        """Write all new segments, the last one first."""
        old_indexes = {
            found.base_offset: await self._index(swap.partition, found) for found in swap.old
        }
        sections = {
            found.next_offset: entries.sections
            for found in swap.old
            if (entries := old_indexes[found.base_offset]) is not None
        }
        first = old_indexes[swap.old[0].base_offset]
        priors_ms = _priors_ms(first.prior_max_timestamp_ms if first else None, swap.new)
        for number in reversed(range(len(swap.new))):
            new = swap.new[number]
            data, found = await swap.staging.read(new.key)
            if found.footer.checksum != new.checksum:
                raise InvalidRequestError(f"{new.key} has changed since it was looked at")
            entries = index.rebuild(
                found.batches, self._index_interval_bytes, prior_max_timestamp_ms=priors_ms[number]
            )
            entries.sections.update(sections.get(new.next_offset, {}))
            await self._save(swap.partition)  # Only an owner gets beyond this.
            if new.base_offset in old_indexes:
                await self._replace(swap, number, data, entries)
            else:
                await self._put(swap.partition, new.base_offset, data, entries)

    async def _replace(self, swap: _Swap, number: int, data: memoryview, entries: Index) -> None:
        """Write a new segment over an old one, and let readers see it and all that follow it."""
        partition, new = swap.partition, swap.new[number]
        partition.begin_replacing()
        try:
            await self._put(partition, new.base_offset, data, entries)
        except BaseException:
            partition.close()  # Nobody knows what is there; whoever opens it next finds out.
            raise
        partition.segments.replace(
            [(later.base_offset, later.size_bytes) for later in swap.new[number:]],
            swap.new[-1].next_offset,
        )
        changed = [found for found in swap.old if found.base_offset >= new.base_offset]
        self._reader.forget(
            *(key for found in changed for key in self._keys(partition, found.base_offset))
        )
        partition.end_replacing()

    async def _put(
        self, partition: PartitionLog, base_offset: int, data: memoryview, entries: Index
    ) -> None:
        index_key, segment_key = self._keys(partition, base_offset)
        encoded = entries.encode()
        for key, write in (
            (index_key, lambda: self._store.delete([index_key])),
            (segment_key, lambda: self._store.put(segment_key, [data], create=False)),
            (index_key, lambda: self._store.put(index_key, [encoded], create=False)),
        ):
            await self._retry(partition, key, write)

    async def _delete_old(self, swap: _Swap) -> None:
        """Delete what has no successor of the same name, one by one, the first one first."""
        kept = {new.base_offset for new in swap.new}
        for found in swap.old:
            if found.base_offset not in kept:
                keys = self._keys(swap.partition, found.base_offset)
                await self._retry(swap.partition, keys[0], lambda: self._store.delete(keys))  # noqa: B023

    async def _index(self, partition: PartitionLog, found: Segment) -> Index | None:
        try:
            return await self._reader.index(partition, found)
        except DamagedObjectError:
            return None  # What the job has made of it may still be worth having.

    async def _retry(
        self, partition: PartitionLog, key: str, operation: Callable[[], Awaitable[None]]
    ) -> None:
        """Try until it works, or the log is closed: half a swap is no good."""
        backoff = Backoff(self._random)
        while True:
            partition.check_open()
            try:
                return await operation()
            except OperatingError as error:
                pause_seconds = backoff.next_seconds()
                log.warning(
                    "swap held up",
                    key=key,
                    error=str(error),
                    tries=backoff.tries,
                    retry_in_seconds=round(pause_seconds, 3),
                )
                await asyncio.sleep(pause_seconds)

    def _keys(self, partition: PartitionLog, base_offset: int) -> tuple[str, str]:
        place = (self._namespace, partition.topic, partition.partition, base_offset)
        return object_keys.index_key(*place), object_keys.segment_key(*place)


def _priors_ms(first_ms: int | None, new: Sequence[StagedSegment]) -> list[int | None]:
    """The greatest timestamp of the log before each of the segments, where it is known."""
    priors_ms: list[int | None] = []
    for one in new:
        priors_ms.append(first_ms)
        first_ms = None if first_ms is None else max(first_ms, one.max_timestamp_ms)
    return priors_ms
