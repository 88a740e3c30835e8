"""Opens logs from their segments; `log_opener` then adds the records of WAL streams.

A bucket listing determines which segments exist. A segment ends where the next one begins, so only
the last one of a partition is read: its footer for the end of the log, its index for producer state
and leader epochs. If the metadata store knows another end, the last batch is read as well. Damage
does not prevent a log from opening: unknown objects are skipped, a missing index is rebuilt, and
the whole batches of a damaged segment are salvaged. Each case is logged.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafscale.aio.gather import map_limited
from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.observability.logging import get_logger
from kafscale.records import BatchView, split
from kafscale.records.control import read_end_marker
from kafscale.storage.bucket import list_objects, read_index, read_segment_footer
from kafscale.storage.formats import object_keys
from kafscale.storage.formats import segment as segment_format
from kafscale.storage.formats.index import Index
from kafscale.storage.formats.index_section import EPOCHS_SECTION, PRODUCERS_SECTION
from kafscale.storage.log.config import LogSettings
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.batch_run import BatchRun
from kafscale.storage.log.state.leader_epochs import LeaderEpochs
from kafscale.storage.log.state.producer_state import Producers
from kafscale.storage.log.state.segment_list import Segment, SegmentList
from kafscale.storage.log.state.tail import TailMemory
from kafscale.storage.log.state.transaction_state import Transactions
from kafscale.storage.log.state.transactions import section_of
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.log_reader import LogReader
from kafscale.storage.recovery.recovered_run import new_pacer, recover_run

logger = get_logger(__name__)

SECTION_SEARCH_MAX = 8
"""How many segments are searched, from the newest, for missing index sections."""

PARALLEL_OPENS_MAX = 32
"""Limit of listings, and of logs, that are read concurrently."""

WHOLE_TOPIC_MIN = 16
"""With this number of partitions of a topic, list the whole topic in one request."""

Listing = defaultdict[tuple[str, int], SegmentList]
"""The segments by topic directory and partition; the end of the last one is not known yet."""


@dataclass(frozen=True, kw_only=True)
class PartitionToOpen:
    """What is needed to open the log of a partition."""

    topic: str
    topic_id: bytes
    directory: str
    """The part of object keys that stands for the topic."""
    partition: int
    settings: LogSettings
    leader_epoch: int
    start_offset: int = 0
    """The log start offset from the metadata store."""
    end_offset: int = 0
    """The end of the last segment from the metadata store; the log cannot end before it."""
    fully_rolled: bool = True
    """Whether segments hold all acknowledged records, so that the WAL is not needed."""
    released_end: int | None = None
    """The log's end when its former owner released it fully rolled; None if it is not known."""
    is_new: bool = False
    """Whether the partition was never written, so that nothing is listed."""
    lost_owner: tuple[int, int] | None = None
    """The broker id and epoch of the owner before, whose WAL stream was fenced for this opening."""
    assigned_ms: int = 0


class SegmentRecovery:
    """Opens logs from segments."""

    def __init__(
        self, store: ObjectStore, namespace: str, reader: LogReader, memory: TailMemory
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._reader = reader
        self._memory = memory
        self._parallel = asyncio.Semaphore(PARALLEL_OPENS_MAX)
        """Shared by concurrent calls of `open`."""

    async def open(self, partitions: Sequence[PartitionToOpen], now_ms: int) -> list[PartitionLog]:
        """Open logs from their segments; the WAL is not replayed yet."""
        opened: list[PartitionLog] = []

        async def open_one(partition: PartitionToOpen) -> None:
            await self._open(partition, listing, now_ms, opened)

        try:
            listing = await self._list(
                partition for partition in partitions if not partition.is_new
            )
            await map_limited(open_one, partitions, PARALLEL_OPENS_MAX)
        except BaseException:
            for log in opened:
                log.close()
            raise
        by_topic_partition = {(log.topic, log.partition): log for log in opened}
        return [
            by_topic_partition[partition.topic, partition.partition] for partition in partitions
        ]

    # --- listing ------------------------------------------------------------------------------

    async def _list(self, partitions: Iterable[PartitionToOpen]) -> Listing:
        """List the segments of partitions, with few requests for partitions of one topic."""
        by_directory: dict[str, list[int]] = defaultdict(list)
        for partition in partitions:
            by_directory[partition.directory].append(partition.partition)
        prefixes = []
        for directory, numbers in by_directory.items():
            if len(numbers) >= WHOLE_TOPIC_MIN:
                prefixes.append(object_keys.topic_prefix(self._namespace, directory))
            else:
                prefixes += [
                    object_keys.partition_prefix(self._namespace, directory, number)
                    for number in numbers
                ]
        listing: Listing = defaultdict(SegmentList)

        async def list_one(prefix: str) -> None:
            await self._list_below(prefix, listing)

        await map_limited(list_one, prefixes, PARALLEL_OPENS_MAX)
        return listing

    async def _list_below(self, prefix: str, listing: Listing) -> None:
        ignored_count = 0
        async with self._parallel:
            async for ref, item in list_objects(self._store, self._namespace, prefix):
                if ref is None:
                    ignored_count += 1
                    logger.debug("object ignored", key=item.key)
                elif isinstance(ref, object_keys.SegmentRef) and not ref.is_index:
                    segments = listing[ref.directory, ref.partition]
                    segments.append(ref.base_offset, ref.base_offset, item.size_bytes)
        if ignored_count:
            logger.warning(
                "unknown objects in topic prefix ignored", prefix=prefix, count=ignored_count
            )

    # --- opening --------------------------------------------------------------------------------

    async def _open(
        self, partition: PartitionToOpen, listing: Listing, now_ms: int, opened: list[PartitionLog]
    ) -> None:
        """Open a log and add it to `opened` before it holds anything, so that it gets closed."""
        segments = listing[partition.directory, partition.partition]
        if not len(segments):
            opened.append(self._new_log(partition, segments))
            return
        async with self._parallel:
            damaged = await self._find_end(partition, segments)
            log = self._new_log(partition, segments)
            opened.append(log)
            if len(segments):
                await self._restore(log, now_ms)
        run_pacer = new_pacer()
        for _, batches in sorted(damaged.items()):
            if batches:
                run = await asyncio.to_thread(BatchRun.from_batches, batches)
                await recover_run(log, run, now_ms, run_pacer)

    def _new_log(self, partition: PartitionToOpen, segments: SegmentList) -> PartitionLog:
        log = PartitionLog(
            partition.topic,
            partition.topic_id,
            partition.partition,
            directory=partition.directory,
            settings=partition.settings,
            segments=segments,
            memory=self._memory,
            leader_epoch=partition.leader_epoch,
        )
        log.start_offset = max(segments.start_offset or 0, partition.start_offset)
        log.saved_offset = partition.end_offset
        return log

    async def _find_end(
        self, partition: PartitionToOpen, segments: SegmentList
    ) -> dict[int, list[BatchView]]:
        """Read the last footer; return the salvaged batches of damaged segments at the end."""
        damaged: dict[int, list[BatchView]] = {}
        while len(segments):
            base_offset = segments[-1].base_offset
            key = object_keys.segment_key(
                self._namespace, partition.directory, partition.partition, base_offset
            )
            try:
                footer = await read_segment_footer(self._store, key)
                segments.end_offset = footer.last_offset + 1
                if segments.end_offset != partition.end_offset:
                    await self._verify_end(key, segments[-1])
            except DamagedObjectError as error:
                reason = error.reason
            else:
                return damaged
            data = await self._store.get(key)
            batches = await asyncio.to_thread(segment_format.salvage, data)
            logger.error("damaged segment", key=key, reason=reason, batches_salvaged=len(batches))
            segments.drop_last()
            damaged[base_offset] = batches
        return damaged

    async def _verify_end(self, key: str, segment: Segment) -> None:
        """Raise if the last batch ends elsewhere than the footer says, which has no checksum."""
        entries = await read_index(self._store, key, segment.size_bytes)
        position = segment_format.HEADER_BYTES if entries is None else entries.positions[-1]
        end = segment.size_bytes - segment_format.FOOTER_BYTES
        try:
            batches = split(await self._store.get_range(key, position, end))
        except RecordsError as error:
            raise DamagedObjectError(key, str(error)) from None
        if not batches or batches[-1].next_offset != segment.next_offset:
            raise DamagedObjectError(
                key, f"the footer says that it ends at offset {segment.next_offset}, it does not"
            )

    async def _restore(self, log: PartitionLog, now_ms: int) -> None:
        """Restore producer state and leader epochs as of the last segment's end."""
        segments = log.segments
        entries = await self._index(log, len(segments) - 1)
        log.rolled_max_timestamp_ms = entries.log_max_timestamp_ms if entries else None
        number = len(segments)
        oldest = max(number - SECTION_SEARCH_MAX, 0)
        while number > oldest and not (
            # An index speaks of its segment's end, where the next one must begin.
            (number == len(segments) or await self._ends_at_next(log, segments[number - 1]))
            and await self._restore_sections(log, number - 1)
        ):
            number -= 1
        for later in range(number, len(segments)):
            await self._replay(log, later, now_ms)
        log.transactions.mark_rolled(segments.end_offset, None)

    async def _ends_at_next(self, log: PartitionLog, segment: Segment) -> bool:
        """Whether a segment ends where the next one begins; if it is damaged, that is unknown."""
        try:
            return await self._reader.ends_at_next(log, segment)
        except DamagedObjectError:
            return False

    async def _restore_sections(self, log: PartitionLog, number: int) -> bool:
        """Restore producer state and leader epochs from an index; return whether it has them."""
        entries = await self._index(log, number)
        if entries is None:
            return False
        sections = entries.sections
        if PRODUCERS_SECTION not in sections or EPOCHS_SECTION not in sections:
            return False
        base_offset = log.segments[number].base_offset
        key = object_keys.index_key(self._namespace, log.directory, log.partition, base_offset)
        try:
            producers = Producers.decode(key, sections[PRODUCERS_SECTION])
            epochs = LeaderEpochs.decode(key, sections[EPOCHS_SECTION])
            transactions = Transactions.restore(section_of(key, sections))
        except DamagedObjectError as error:
            logger.warning("damaged index section ignored", key=key, reason=error.reason)
            return False
        log.restore_producers(producers, transactions)
        log.epochs = epochs
        return True

    async def _replay(self, log: PartitionLog, number: int, now_ms: int) -> None:
        """Restore producer state and leader epochs from the batches of a segment."""
        segment = log.segments[number]
        position = segment_format.HEADER_BYTES
        pacer = new_pacer()
        try:
            while batches := await self._reader.batches(log, segment, position):
                for batch in batches:
                    if batch.base_offset >= segment.next_offset:
                        return  # A crash interrupted a swap: the next segment has it, too.
                    log.update_state(batch.header(), now_ms, read_end_marker(batch))
                    position += len(batch)
                    await pacer.step()
        except (DamagedObjectError, RecordsError) as error:
            logger.warning(
                "damaged segment",
                topic=log.topic,
                partition=log.partition,
                base_offset=segment.base_offset,
                reason=str(error),
            )

    async def _index(self, log: PartitionLog, number: int) -> Index | None:
        """The index of a segment; None if there is none and it cannot be rebuilt."""
        try:
            return await self._reader.index(log, log.segments[number])
        except DamagedObjectError as error:
            logger.warning("damaged segment", key=error.key, reason=error.reason)
            return None
