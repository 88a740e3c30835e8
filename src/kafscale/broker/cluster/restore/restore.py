"""Metadata restore: makes metadata from a snapshot agree with the bucket, which is newer.

    sessions    sessions that started before the restore are over: their leases and WAL streams
    scan        list the bucket, now that nothing can be added to it any more
    topics      repair those that were created, grew or were deleted after the snapshot (`topics`)
    partitions  all lose their owners and get new leader epochs (`partitions`)
    counters    broker epochs and producer ids continue beyond all that were allocated
    producers   transactional ids get other producer ids (`transactional_ids`)
    complete    brokers may be assigned partitions, and clients be served

Invariants: the controller does all of this before anything else in its term, and its writes fail
once it is no longer controller. Every step is idempotent, so that the successor of a controller
that failed halfway starts from the beginning. Nothing in the bucket changes except for fences and,
at the end, the topic catalog.

The epoch counters show which sessions are over: a session that started since the restore has
allocated its epoch since, and it is the last one that was allocated. So a broker that is about to
join, with a stream but without a registration, is not mistaken for a lost one.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from kafscale.broker.cluster.controller.plan.planner import Owner
from kafscale.broker.cluster.restore import partitions, transactional_ids
from kafscale.broker.cluster.restore.metadata_repair import MetadataRepair
from kafscale.broker.cluster.restore.topics import TopicEvidence
from kafscale.broker.topic_catalog_publisher import TopicCatalogPublisher
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.cluster.restore_marker import (
    REVISION_BUMP,
    PendingRestore,
    complete_restore,
    find_pending_restore,
)
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_broker
from kafscale.metadata.schema.model import TOPIC_ID_BYTES
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger
from kafscale.storage.recovery.bucket_scan import BucketScan, BucketScanner
from kafscale.storage.wal.streams import Stream, Streams

logger = get_logger(__name__)

_EPOCHS: Final = keys.counter(id_allocator.broker_epoch_counter(""))


class MetadataRestore:
    """Makes restored metadata agree with the bucket."""

    def __init__(
        self,
        store: MetadataStore,
        topic_store: TopicStore,
        streams: Streams,
        scanner: BucketScanner,
        catalog: TopicCatalogPublisher,
        *,
        cluster_id: str,
        namespace: str,
        clock: Callable[[], int],
        random: Random,
    ) -> None:
        self._store = store
        self._topic_store = topic_store
        self._streams = streams
        self._scanner = scanner
        self._catalog = catalog
        self._cluster_id = cluster_id
        self._namespace = namespace
        self._clock = clock
        self._random = random

    async def complete(self, controller: Entry) -> None:
        """Complete the restore of the metadata, if one is pending."""
        pending = await find_pending_restore(self._store)
        if pending is None:
            return
        began_ms = self._clock()
        logger.warning(
            "metadata restore started",
            snapshot=pending.info.snapshot,
            taken_at=pending.info.taken_at,
            restored_at=pending.info.restored_at,
        )
        since_revision = _since_revision(pending)
        metadata = MetadataRepair(self._store, controller)
        streams = await self._streams.all()
        live_sessions = await self._live_sessions(since_revision)
        await self._end_old_sessions(controller, streams, live_sessions)
        scan = await self._scanner.scan()
        logger.info(
            "bucket scanned",
            objects=scan.object_count,
            wal_objects=scan.wal_object_count,
            topics=len(scan.topics),
            has_catalog=scan.catalog is not None,
        )
        await self._restore_topics(metadata, scan, since_revision)
        await self._restore_partitions(metadata, scan, live_sessions)
        await self._raise_counters(streams)
        await self._restore_transactional_ids(metadata)
        # Later duties act on the topic store, and would undo changes that it does not show yet.
        await self._topic_store.wait_for_revision(metadata.topics_revision)
        # Before completion: the former catalog may be of a higher revision, and of topics since.
        await self._catalog.publish_restored()
        if not await complete_restore(self._store, pending):
            raise StoreUnavailableError("another restore was started or completed concurrently")
        duration = round((self._clock() - began_ms) / 1000, 3)
        logger.warning("metadata restore completed", duration=duration)

    # --- sessions -------------------------------------------------------------------------------

    async def _live_sessions(self, since_revision: int) -> set[Owner]:
        """The sessions that started since the restore; call it after the streams were listed."""
        snapshot = await self._store.range(_EPOCHS)
        return {
            (int(broker_id), id_allocator.counter_value(entry) - 1)
            for entry in snapshot.entries
            if entry.mod_revision >= since_revision
            and (broker_id := entry.key.removeprefix(_EPOCHS)).isdecimal()
        }

    async def _end_old_sessions(
        self, controller: Entry, streams: Sequence[Stream], live_sessions: set[Owner]
    ) -> None:
        """End the registrations and streams of sessions that are over."""
        snapshot = await self._store.range(keys.BROKERS)
        brokers = [decode_broker(entry) for entry in snapshot.entries]
        former = [broker for broker in brokers if (broker.id, broker.epoch) not in live_sessions]
        for broker in former:
            await self._store.revoke(broker.lease)
        if any(broker.lease == controller.lease for broker in former):
            raise StoreUnavailableError("this broker's own session started before the restore")
        ended = [
            stream for stream in streams if (stream.broker_id, stream.epoch) not in live_sessions
        ]
        fenced = await self._streams.fence_all(ended)
        logger.info(
            "old broker sessions ended",
            registrations=len(former),
            streams=len(ended),
            fenced=fenced,
        )

    # --- topics and partitions ------------------------------------------------------------------

    async def _restore_topics(
        self, metadata: MetadataRepair, scan: BucketScan, since_revision: int
    ) -> None:
        known = await metadata.read()
        evidence = TopicEvidence(
            topics=known.topics,
            tombstones=known.tombstones,
            known_revision=max((one for one in known.revisions if one < since_revision), default=0),
            since_revision=since_revision,
            inventory=scan,
            cluster_id=self._cluster_id,
            namespace=self._namespace,
            now_ms=self._clock(),
            new_id=lambda: self._random.randbytes(TOPIC_ID_BYTES),
        )
        repairs = list(evidence.repairs())
        for repair in repairs:
            logger.warning(
                "topic restored" if repair.after else "topic deletion restored",
                topic=repair.name,
                reason=repair.reason,
                partitions=repair.after.partitions if repair.after else 0,
                partitions_before=repair.before.partitions if repair.before else 0,
            )
            await metadata.apply(repair)
        tombstones = [repair.tombstone_after for repair in repairs]
        retired = {each.id for each in tombstones if each is not None and each.emptied_ms}
        await metadata.write_deleted(evidence.deleted_ids() | retired, evidence.now_ms)
        logger.info("topics restored", known=len(known.topics), changed=len(repairs))

    async def _restore_partitions(
        self, metadata: MetadataRepair, scan: BucketScan, live_sessions: set[Owner]
    ) -> None:
        known = await metadata.read()
        now_ms = self._clock()
        unowned_assignments = [
            assignment
            for topic in known.topics.values()
            for assignment in partitions.unowned_assignments(
                topic, known.assignments[topic.name], live_sessions, now_ms
            )
        ]
        states = []
        directories = {topic.directory: topic for topic in known.topics.values()}
        for (directory, number), start_offset in scan.log_starts.items():
            topic = directories.get(directory)
            if topic is not None:
                before = known.state_of(topic, number)
                after = partitions.with_start_offset(topic, number, before, start_offset)
                states += [] if after is None else [after]
        await metadata.write(unowned_assignments, states)
        logger.info(
            "partitions lost their owners",
            partitions=len(unowned_assignments),
            starts_raised=len(states),
        )

    # --- counters -------------------------------------------------------------------------------

    async def _raise_counters(self, streams: Sequence[Stream]) -> None:
        newest: dict[int, int] = defaultdict(lambda: -1)
        for stream in streams:
            newest[stream.broker_id] = max(newest[stream.broker_id], stream.epoch)
        for broker_id, epoch in newest.items():
            await id_allocator.advance_to(
                self._store, id_allocator.broker_epoch_counter(str(broker_id)), epoch + 1
            )
        allocated = await id_allocator.peek(self._store, id_allocator.PRODUCER_ID_COUNTER) or 0
        first = partitions.producer_id(allocated, self._clock())
        await id_allocator.advance_to(self._store, id_allocator.PRODUCER_ID_COUNTER, first)
        logger.info("counters raised", brokers=len(newest), producer_id=first)

    async def _restore_transactional_ids(self, metadata: MetadataRepair) -> None:
        """Give transactional ids new producer ids, once the counter is raised."""
        records = await metadata.transactional_ids()
        if not records:
            return
        first = await id_allocator.allocate(
            self._store, id_allocator.PRODUCER_ID_COUNTER, len(records)
        )
        now_ms = self._clock()
        await metadata.write_transactional_ids(
            transactional_ids.with_producer(record, producer_id, now_ms)
            for producer_id, record in enumerate(records, first)
        )
        logger.info("transactional ids got other producer ids", count=len(records))


def _since_revision(pending: PendingRestore) -> int:
    """The revision that separates the snapshot's content from later writes."""
    settled_count = int(pending.completed.value) if pending.completed else 0
    if pending.restore_count > settled_count or pending.marker is None:
        return pending.restore_count * REVISION_BUMP
    return pending.marker.mod_revision
