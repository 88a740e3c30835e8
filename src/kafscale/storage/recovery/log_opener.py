"""Opening logs from what segments hold: a listing, and for each log its last segment's end.

The listing is the truth about which segments exist. A segment ends where the next begins, so only
the last one of a partition is looked into: its footer for the end of the log, its index for what
the log knew there (producers, leader epochs). Nothing that is found stops a partition from opening:
garbage is skipped, a lost index is made anew, of a damaged segment the whole batches are saved.
Each is told by a line in the log.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafscale.aio.gather import together
from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.observability.logging import get_logger
from kafscale.records import BatchView
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.formats.index import Index
from kafscale.storage.log.config import LogSettings
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.batch_run import Run
from kafscale.storage.log.state.leader_epochs import LeaderEpochs
from kafscale.storage.log.state.producer_state import Producers
from kafscale.storage.log.state.segment_list import Segments
from kafscale.storage.log.state.tail import TailMemory
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.log_reader import LogReader
from kafscale.storage.segments.segment_writer import EPOCHS_SECTION, PRODUCERS_SECTION

log = get_logger(__name__)

SECTIONS_LOOKED_FOR_MAX = 8
"""How many segments back a lost section is looked for."""

LISTED_WHOLE_MIN = 16
"""From so many partitions of a topic on, the whole topic is listed instead of each by itself."""

Listing = dict[tuple[str, int], list[tuple[int, int]]]
"""The base offset and size of every segment, by topic and partition."""


@dataclass(frozen=True, kw_only=True)
class PartitionToOpen:
    """What has to be known of a partition to open its log."""

    topic: str
    topic_id: bytes
    partition: int
    settings: LogSettings
    leader_epoch: int
    start_offset: int = 0
    """The start of the log that the metadata store remembers."""
    end_offset: int = 0
    """The end of its last segment that the metadata store remembers: offsets never go below it."""
    fully_rolled: bool = True
    """Whether segments hold everything that was ever acknowledged: no WAL is looked at."""
    is_new: bool = False
    """Whether nothing was ever written: the log begins empty, and nothing is listed."""


class Opener:
    """Opens logs from what the store holds."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        reader: LogReader,
        memory: TailMemory,
        parallel: asyncio.Semaphore,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._reader = reader
        self._memory = memory
        self._parallel = parallel

    async def open(self, partitions: Sequence[PartitionToOpen], now_ms: int) -> list[PartitionLog]:
        """The logs, as far as segments hold them; the WAL is still to be replayed."""
        opened: list[PartitionLog] = []
        try:
            listing = await self._list(one for one in partitions if not one.is_new)
            await together(self._open(one, listing, now_ms, opened) for one in partitions)
        except BaseException:
            for log_opened in opened:
                log_opened.close()
            raise
        by_place = {(one.topic, one.partition): one for one in opened}
        return [by_place[one.topic, one.partition] for one in partitions]

    # --- listing ------------------------------------------------------------------------------

    async def _list(self, partitions: Iterable[PartitionToOpen]) -> Listing:
        """The segments of partitions, in few requests where they are of one topic."""
        by_topic: dict[str, list[int]] = defaultdict(list)
        for one in partitions:
            by_topic[one.topic].append(one.partition)
        prefixes = []
        for topic, numbers in by_topic.items():
            if len(numbers) >= LISTED_WHOLE_MIN:
                prefixes.append(object_keys.topic_prefix(self._namespace, topic))
            else:
                prefixes += [
                    object_keys.partition_prefix(self._namespace, topic, number)
                    for number in numbers
                ]
        found: Listing = defaultdict(list)
        await together(self._list_below(prefix, found) for prefix in prefixes)
        return found

    async def _list_below(self, prefix: str, found: Listing) -> None:
        garbage = 0
        async with self._parallel:
            async for chunk in self._store.list(prefix):
                for item in chunk:
                    place = object_keys.parse_segment(self._namespace, item.key)
                    if place is None:
                        if object_keys.parse_log_start(self._namespace, item.key):
                            continue  # For those who see no metadata; we know it from there.
                        garbage += 1
                        log.debug("object ignored", key=item.key)
                    elif not place.is_index:
                        found[place.topic, place.partition].append(
                            (place.base_offset, item.size_bytes)
                        )
        if garbage:
            log.warning("objects ignored that are no segments", prefix=prefix, count=garbage)

    # --- one log ------------------------------------------------------------------------------

    async def _open(
        self, one: PartitionToOpen, listing: Listing, now_ms: int, opened: list[PartitionLog]
    ) -> None:
        """Open a log, which is among the opened ones as soon as it holds anything."""
        segments = Segments()
        for base_offset, size_bytes in listing.get((one.topic, one.partition), ()):
            segments.append(base_offset, base_offset, size_bytes)
        if not len(segments):
            opened.append(self._new(one, segments))
            return
        async with self._parallel:
            damaged = await self._find_end(one, segments)
            new = self._new(one, segments)
            new.damaged_bases.update(damaged)
            opened.append(new)
            if len(segments):
                await self._restore(new, now_ms)
        for _, batches in sorted(damaged.items()):
            if batches:
                new.recover(Run.of(batches), now_ms)

    def _new(self, one: PartitionToOpen, segments: Segments) -> PartitionLog:
        new = PartitionLog(
            one.topic,
            one.topic_id,
            one.partition,
            settings=one.settings,
            segments=segments,
            memory=self._memory,
            leader_epoch=one.leader_epoch,
        )
        new.start_offset = max(segments.start_offset or 0, one.start_offset)
        new.saved_offset = one.end_offset
        return new

    async def _find_end(
        self, one: PartitionToOpen, segments: Segments
    ) -> dict[int, list[BatchView]]:
        """Read the last footer; return what can be saved of damaged segments at the end."""
        damaged: dict[int, list[BatchView]] = {}
        while len(segments):
            base_offset = segments[-1].base_offset
            key = object_keys.segment_key(self._namespace, one.topic, one.partition, base_offset)
            suffix = await self._store.get_suffix(key, segment.FOOTER_BYTES)
            try:
                segments.end_offset = segment.decode_footer(key, suffix).last_offset + 1
            except DamagedObjectError as error:
                reason = error.reason
            else:
                return damaged
            batches = segment.salvage(await self._store.get(key))
            log.error("damaged segment", key=key, reason=reason, batches_saved=len(batches))
            segments.drop_last()
            damaged[base_offset] = batches
        return damaged

    async def _restore(self, opened: PartitionLog, now_ms: int) -> None:
        """Take up what the log knew at the end of its last segment."""
        segments = opened.segments
        entries = await self._index(opened, len(segments) - 1)
        opened.rolled_max_timestamp_ms = entries.log_max_timestamp_ms if entries else None
        number = len(segments)
        oldest = max(number - SECTIONS_LOOKED_FOR_MAX, 0)
        while number > oldest and not await self._restore_sections(opened, number - 1):
            number -= 1
        for later in range(number, len(segments)):
            await self._replay(opened, later, now_ms)

    async def _restore_sections(self, opened: PartitionLog, number: int) -> bool:
        """Take up what an index tells of producers and epochs, if it does."""
        entries = await self._index(opened, number)
        if entries is None:
            return False
        sections = entries.sections
        if PRODUCERS_SECTION not in sections or EPOCHS_SECTION not in sections:
            return False
        base_offset = opened.segments[number].base_offset
        key = object_keys.index_key(self._namespace, opened.topic, opened.partition, base_offset)
        try:
            producers = Producers.decode(key, sections[PRODUCERS_SECTION])
            epochs = LeaderEpochs.decode(key, sections[EPOCHS_SECTION])
        except DamagedObjectError as error:
            log.warning("section of an index ignored", key=key, reason=error.reason)
            return False
        opened.producers, opened.epochs = producers, epochs
        return True

    async def _replay(self, opened: PartitionLog, number: int, now_ms: int) -> None:
        """Learn from the batches of a segment what its index should have told."""
        found = opened.segments[number]
        position = segment.HEADER_BYTES
        try:
            while batches := await self._reader.batches(opened, found, position):
                for batch in batches:
                    opened.learn(batch, now_ms)
                    position += len(batch)
        except (DamagedObjectError, RecordsError) as error:
            log.warning(
                "damaged segment",
                topic=opened.topic,
                partition=opened.partition,
                base_offset=found.base_offset,
                reason=str(error),
            )

    async def _index(self, opened: PartitionLog, number: int) -> Index | None:
        """The index of a segment; None if there is none, and nothing to make one of."""
        try:
            return await self._reader.index(opened, opened.segments[number])
        except DamagedObjectError as error:
            log.warning("damaged segment", key=error.key, reason=error.reason)
            return None
