"""Opening the logs of a topic: one listing, and for each partition its last segment's end.

The listing is the truth about which segments exist. A segment ends where the next begins, so only
the last one of a partition is looked into: its footer for the end of the log, its index for what
the log knew there (producers, leader epochs). Nothing that is found stops a partition from opening:
garbage is skipped, a lost index is made anew, of a damaged segment the whole batches are saved.
Each is told by a line in the log.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.observability.logging import get_logger
from kafscale.storage import layout, segment
from kafscale.storage.epochs import LeaderEpochs
from kafscale.storage.index import Index
from kafscale.storage.log import PartitionLog
from kafscale.storage.objects.base import ObjectStore
from kafscale.storage.producers import Producers
from kafscale.storage.reader import LogReader
from kafscale.storage.roll import EPOCHS_SECTION, PRODUCERS_SECTION
from kafscale.storage.run import Run
from kafscale.storage.segments import Segments
from kafscale.storage.settings import LogSettings
from kafscale.storage.tail import TailMemory

log = get_logger(__name__)

SECTIONS_LOOKED_FOR_MAX = 8
"""How many segments back a lost section is looked for."""

Listing = dict[int, list[tuple[int, int]]]
"""The base offset and size of every segment, by partition."""


@dataclass(frozen=True, kw_only=True)
class TopicToOpen:
    """What has to be known of a topic to open its logs."""

    name: str
    id: bytes
    partition_count: int
    settings: LogSettings
    leader_epoch: int
    start_offsets: Mapping[int, int]
    """The log starts that the metadata store remembers, by partition."""


class Opener:
    """Opens logs from what the store holds."""

    def __init__(
        self, store: ObjectStore, namespace: str, reader: LogReader, memory: TailMemory,
        parallel: asyncio.Semaphore,
    ) -> None:  # fmt: skip
        self._store = store
        self._namespace = namespace
        self._reader = reader
        self._memory = memory
        self._parallel = parallel

    def empty(self, topic: TopicToOpen, partition: int) -> PartitionLog:
        """A log that has no segments yet."""
        opened = self._new(topic, partition, Segments())
        opened.resume(opened.start_offset)
        return opened

    async def open(self, topic: TopicToOpen, now_ms: int) -> list[PartitionLog]:
        """The logs of a topic, as far as segments hold them; the WAL is still to be replayed."""
        listing = await self._list(topic)
        return await asyncio.gather(
            *(
                self._open(topic, partition, listing.get(partition, ()), now_ms)
                for partition in range(topic.partition_count)
            )
        )

    async def _list(self, topic: TopicToOpen) -> Listing:
        found: Listing = defaultdict(list)
        garbage = 0
        async with self._parallel:
            async for chunk in self._store.list(layout.topic_prefix(self._namespace, topic.name)):
                for item in chunk:
                    place = layout.parse_segment(self._namespace, item.key)
                    if place is None or place.partition >= topic.partition_count:
                        garbage += 1
                        log.debug("object ignored", key=item.key)
                    elif not place.is_index:
                        found[place.partition].append((place.base_offset, item.size_bytes))
        if garbage:
            log.warning("objects ignored that are no segments", topic=topic.name, count=garbage)
        return found

    async def _open(
        self, topic: TopicToOpen, partition: int, listed: Sequence[tuple[int, int]], now_ms: int
    ) -> PartitionLog:
        segments = Segments()
        for base_offset, size_bytes in listed:
            segments.append(base_offset, base_offset, size_bytes)
        opened = self._new(topic, partition, segments)
        if not listed:
            return opened
        async with self._parallel:
            salvaged = await self._find_end(opened)
            if len(segments):
                await self._restore(opened, now_ms)
        opened.resume(segments.end_offset)
        for run in reversed(salvaged):
            opened.recover(run, now_ms)
        return opened

    def _new(self, topic: TopicToOpen, partition: int, segments: Segments) -> PartitionLog:
        opened = PartitionLog(
            topic.name, topic.id, partition, settings=topic.settings, segments=segments,
            memory=self._memory, leader_epoch=topic.leader_epoch,
        )  # fmt: skip
        start_offset = topic.start_offsets.get(partition, 0)
        opened.start_offset = max(segments.start_offset or 0, start_offset)
        return opened

    async def _find_end(self, opened: PartitionLog) -> list[Run]:
        """Read the last footer; what can be saved of damaged segments at the end is returned."""
        segments = opened.segments
        salvaged: list[Run] = []
        while len(segments):
            last = segments[-1]
            key = layout.segment_key(
                self._namespace, opened.topic, opened.partition, last.base_offset
            )
            suffix = await self._store.get_suffix(key, segment.FOOTER_BYTES)
            try:
                segments.end_offset = segment.decode_footer(key, suffix).last_offset + 1
            except DamagedObjectError as error:
                reason = error.reason
            else:
                return salvaged
            batches = segment.salvage(await self._store.get(key))
            log.error("damaged segment", key=key, reason=reason, batches_saved=len(batches))
            if batches:
                salvaged.append(Run.of(batches))
            segments.drop_last()
            opened.damaged_bases.add(last.base_offset)
        return salvaged

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
        key = layout.index_key(self._namespace, opened.topic, opened.partition, base_offset)
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
                "damaged segment", topic=opened.topic, partition=opened.partition,
                base_offset=found.base_offset, reason=str(error),
            )  # fmt: skip

    async def _index(self, opened: PartitionLog, number: int) -> Index | None:
        """The index of a segment; None if there is none, and nothing to make one of."""
        try:
            return await self._reader.index(opened, opened.segments[number])
        except DamagedObjectError as error:
            log.warning("damaged segment", key=error.key, reason=error.reason)
            return None
