"""Topics and their logs: what happens here when the catalog says that a topic came, grew or went.

The catalog is the truth; this follows it. A topic that was deleted is closed at once, and its
objects are removed in the background, also those of deletions that an earlier life of this broker
did not finish; only then is the name free again.
"""

import asyncio
import uuid
from collections.abc import Callable, Mapping

from kafscale.broker.topic_configs import TopicDefaults, resolve
from kafscale.errors import KafscaleError, TopicExistsError
from kafscale.metadata import partition_states
from kafscale.metadata.catalog import Catalog
from kafscale.metadata.encoding import SEGMENTS_MAX
from kafscale.metadata.model import PartitionState, SegmentInfo, Topic
from kafscale.metadata.store import MetadataStore
from kafscale.observability.logging import get_logger
from kafscale.storage import layout
from kafscale.storage.log import PartitionLog
from kafscale.storage.logs import LogDirectory
from kafscale.storage.opening import TopicToOpen

log = get_logger(__name__)

RETRY_SECONDS = 5.0


class Topics:
    """Keeps the logs of this broker in step with the catalog."""

    def __init__(
        self, catalog: Catalog, store: MetadataStore, defaults: TopicDefaults, *, namespace: str,
        broker_id: int, clock: Callable[[], int],
    ) -> None:  # fmt: skip
        self._catalog = catalog
        self._store = store
        self._defaults = defaults
        self._namespace = namespace
        self._broker_id = broker_id
        self._clock = clock
        self._leader_epoch = 0
        self._logs: LogDirectory | None = None
        self._states: dict[tuple[bytes, int], PartitionState] = {}
        self._deletions: set[asyncio.Task[None]] = set()
        self._closed: dict[bytes, list[PartitionLog]] = {}

    @property
    def leader_epoch(self) -> int:
        """The epoch under which this broker leads its partitions."""
        return self._leader_epoch

    # --- start and stop -----------------------------------------------------------------------

    async def to_open(self, leader_epoch: int) -> list[TopicToOpen]:
        """All topics, with what the metadata store remembers of their partitions."""
        self._leader_epoch = leader_epoch
        topics = list(self._catalog.topics.values())
        found = await asyncio.gather(
            *(partition_states.load(self._store, topic) for topic in topics)
        )
        for topic, states in zip(topics, found, strict=True):
            self._states |= {(topic.id, number): state for number, state in states.items()}
        return [self._to_open(topic) for topic in topics]

    def follow(self, logs: LogDirectory) -> None:
        """Keep these logs in step from now on, and finish the deletions of earlier lives."""
        self._logs = logs
        self._catalog.subscribe(self._on_change)
        for topic in list(self._catalog.deletions.values()):
            self._begin_deletion(topic)

    async def close(self) -> None:
        for deletion in self._deletions:
            deletion.cancel()
        await asyncio.gather(*self._deletions, return_exceptions=True)

    # --- changes ------------------------------------------------------------------------------

    async def create(
        self, name: str, partition_count: int, configs: Mapping[str, str], timeout_ms: int
    ) -> Topic:
        """Create a topic; when this returns, its partitions can be written to."""
        return await self._catalog.create(
            name, partition_count, configs, self._clock(), uuid.uuid4().bytes,
            timeout_ms=timeout_ms,
        )  # fmt: skip

    async def create_if_missing(self, name: str, partition_count: int, timeout_ms: int) -> None:
        """Create a topic because a client has named it; another may be faster."""
        if name not in self._catalog.topics:
            try:
                await self.create(name, partition_count, {}, timeout_ms)
            except TopicExistsError:
                return
            log.info("topic created on first use", topic=name, partitions=partition_count)

    async def save(self, partition: PartitionLog) -> None:
        """Remember what is worth knowing of a partition without opening its log."""
        topic = self._catalog.by_id.get(partition.topic_id)
        if topic is None:
            return
        place = (partition.topic_id, partition.partition)
        before = self._states.get(place)
        state = PartitionState(
            topic=partition.topic, topic_id=partition.topic_id, partition=partition.partition,
            leader_broker=str(self._broker_id), leader_epoch=partition.leader_epoch,
            log_start_offset=partition.start_offset, log_end_offset=partition.end_offset,
            high_watermark=partition.high_watermark, segments=self._segments(partition, before),
            active_segment=self._newest_key(partition),
            segment_count=len(partition.segments),
            size_bytes=partition.segments.total_bytes,
            mod_revision=before.mod_revision if before else 0,
        )  # fmt: skip
        self._states[place] = await partition_states.save(self._store, topic, state)

    def _newest_key(self, partition: PartitionLog) -> str:
        if not len(partition.segments):
            return ""
        base_offset = partition.segments[-1].base_offset
        return layout.segment_key(
            self._namespace, partition.topic, partition.partition, base_offset
        )

    def _segments(
        self, partition: PartitionLog, before: PartitionState | None
    ) -> tuple[SegmentInfo, ...]:
        """The newest segments in short; what was said of one before is said again."""
        known = {info.base_offset: info for info in before.segments} if before else {}
        newest = len(partition.segments) - 1
        return tuple(
            known.get(segment.base_offset)
            or SegmentInfo(
                base_offset=segment.base_offset, size_bytes=segment.size_bytes,
                created_ms=self._clock(), last_offset=segment.next_offset - 1,
                max_timestamp_ms=partition.segment_max_timestamp_ms if number == newest else -1,
            )
            for number, segment in partition.segments.newest(SEGMENTS_MAX)
        )  # fmt: skip

    # --- what the catalog tells ---------------------------------------------------------------

    def _on_change(self, before: Topic | None, after: Topic | None) -> None:
        assert self._logs is not None
        if after is None:
            assert before is not None
            self._closed[before.id] = list(self._logs.of_topic(before.name))
            self._logs.close(before.name)
            self._begin_deletion(before)
        elif before is None or after.partitions > before.partitions:
            self._logs.create(self._to_open(after))
        else:
            self._logs.configure(after.name, resolve(after.configs, self._defaults))

    def _to_open(self, topic: Topic) -> TopicToOpen:
        starts = {
            number: state.log_start_offset
            for number in range(topic.partitions)
            if (state := self._states.get((topic.id, number))) is not None
        }
        return TopicToOpen(
            name=topic.name, id=topic.id, partition_count=topic.partitions,
            settings=resolve(topic.configs, self._defaults), leader_epoch=self._leader_epoch,
            start_offsets=starts,
        )  # fmt: skip

    def _begin_deletion(self, topic: Topic) -> None:
        deletion = asyncio.get_running_loop().create_task(self._delete(topic))
        self._deletions.add(deletion)
        deletion.add_done_callback(self._deletions.discard)

    async def _delete(self, topic: Topic) -> None:
        assert self._logs is not None
        while True:
            try:
                await self._logs.delete_objects(topic.name, self._closed.get(topic.id, []))
                await self._catalog.finish_deletion(topic.name, topic.id)
            except KafscaleError as error:
                log.warning("topic not deleted yet", topic=topic.name, error=str(error))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._closed.pop(topic.id, None)
                self._states = {k: v for k, v in self._states.items() if k[0] != topic.id}
                return
