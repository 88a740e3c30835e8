"""Restoration: metadata that are older than the bucket, from a snapshot, come to agree with it.

    lives       whoever began before the restoration is over: its lease, and its WAL stream
    inventory   what the bucket holds, now that nothing can be added to it any more
    topics      those that came, grew and went after the snapshot (`restored_topics`)
    partitions  all are orphans, with new leader epochs (`restored_partitions`)
    counters    epochs of brokers and ids of producers go on beyond all that were given out
    settled     brokers may be given partitions, and clients be served

The laws: the controller does all of it before anything else in its term, and what it writes fails
if it is controller no more. Every step can be done twice, so that whoever follows a controller that
died in the middle begins from the beginning. Nothing in the bucket is changed but for fences.

Which lives are over is told by the counters of epochs: a life that began since the restoration has
taken its epoch since, and it is the last one that was taken. A broker that is about to join, and
has a stream but no registration yet, is so not mistaken for one that is over.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Final, Protocol

from kafscale.broker.cluster.controller.plan.planner import Owner
from kafscale.broker.cluster.restore import partitions
from kafscale.broker.cluster.restore.metadata_repair import RestoredMetadata
from kafscale.broker.cluster.restore.topics import Evidence
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.cluster.restore_marker import REVISION_LEAP, Unsettled, find_restored, settle
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_broker
from kafscale.metadata.schema.model import TOPIC_ID_BYTES
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.logging import get_logger
from kafscale.storage.recovery.bucket_scan import Inventory
from kafscale.storage.wal.streams import Stream

log = get_logger(__name__)

_EPOCHS: Final = keys.counter(id_allocator.broker_epoch(""))


class Bucket(Protocol):
    """What is in the bucket."""

    async def take(self) -> Inventory:
        """Look at everything."""


class AllStreams(Protocol):
    """The WAL streams of all brokers."""

    async def all(self) -> list[Stream]: ...

    async def end(self, streams: Iterable[Stream]) -> int:
        """End streams; return how many of them were not over yet."""


class Restoration:
    """Makes restored metadata agree with the bucket."""

    def __init__(
        self,
        store: MetadataStore,
        catalog: Catalog,
        streams: AllStreams,
        bucket: Bucket,
        *,
        cluster_id: str,
        namespace: str,
        clock: Callable[[], int],
        random: Random,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._streams = streams
        self._bucket = bucket
        self._cluster_id = cluster_id
        self._namespace = namespace
        self._clock = clock
        self._random = random

    async def complete(self, controller: Entry) -> None:
        """Settle the restoration of the metadata, if they were restored and are not settled."""
        unsettled = await find_restored(self._store)
        if unsettled is None:
            return
        began_ms = self._clock()
        log.warning(
            "restored metadata are being settled",
            snapshot=unsettled.restored.snapshot,
            taken_at=unsettled.restored.taken_at,
            restored_at=unsettled.restored.restored_at,
        )
        since_revision = _since_revision(unsettled)
        metadata = RestoredMetadata(self._store, controller)
        streams = await self._streams.all()
        living = await self._living(since_revision)
        await self._end_lives(controller, streams, living)
        found = await self._bucket.take()
        log.info(
            "bucket inspected",
            objects=found.object_count,
            wal_objects=found.wal_object_count,
            topics=len(found.topics),
            has_catalog=found.catalog is not None,
        )
        await self._restore_topics(metadata, found, since_revision)
        await self._restore_partitions(metadata, found, living)
        await self._raise_counters(streams)
        # What comes next is done by what is seen, and would undo what is not seen yet.
        await self._catalog.reached(metadata.topics_revision)
        if not await settle(self._store, unsettled):
            raise StoreUnavailableError("the metadata were restored, or settled, by somebody else")
        duration = round((self._clock() - began_ms) / 1000, 3)
        log.warning("restored metadata are settled", duration=duration)

    # --- lives ----------------------------------------------------------------------------------

    async def _living(self, since_revision: int) -> set[Owner]:
        """The lives that began since the restoration; to be asked after streams were listed."""
        snapshot = await self._store.range(_EPOCHS)
        return {
            (int(broker_id), id_allocator.value_of(entry) - 1)
            for entry in snapshot.entries
            if entry.mod_revision >= since_revision
            and (broker_id := entry.key.removeprefix(_EPOCHS)).isdecimal()
        }

    async def _end_lives(
        self, controller: Entry, streams: Sequence[Stream], living: set[Owner]
    ) -> None:
        """End what registrations and streams there are of lives that are over."""
        snapshot = await self._store.range(keys.BROKERS)
        brokers = [decode_broker(entry) for entry in snapshot.entries]
        former = [broker for broker in brokers if (broker.id, broker.epoch) not in living]
        for broker in former:
            await self._store.revoke(broker.lease)
        if any(broker.lease == controller.lease for broker in former):
            raise StoreUnavailableError("this broker's own life began before the restoration")
        over = [stream for stream in streams if (stream.broker_id, stream.epoch) not in living]
        fenced = await self._streams.end(over)
        log.info("former lives ended", registrations=len(former), streams=len(over), fenced=fenced)

    # --- topics and partitions ------------------------------------------------------------------

    async def _restore_topics(
        self, metadata: RestoredMetadata, found: Inventory, since_revision: int
    ) -> None:
        known = await metadata.read()
        evidence = Evidence(
            topics=known.topics,
            tombstones=known.tombstones,
            known_revision=max((one for one in known.revisions if one < since_revision), default=0),
            since_revision=since_revision,
            inventory=found,
            cluster_id=self._cluster_id,
            namespace=self._namespace,
            now_ms=self._clock(),
            new_id=lambda: self._random.randbytes(TOPIC_ID_BYTES),
        )
        verdicts = list(evidence.verdicts())
        for verdict in verdicts:
            log.warning(
                "topic restored" if verdict.after else "deletion of a topic restored",
                topic=verdict.name,
                reason=verdict.reason,
                partitions=verdict.after.partitions if verdict.after else 0,
                partitions_before=verdict.before.partitions if verdict.before else 0,
            )
            await metadata.carry_out(verdict)
        log.info("topics restored", known=len(known.topics), changed=len(verdicts))

    async def _restore_partitions(
        self, metadata: RestoredMetadata, found: Inventory, living: set[Owner]
    ) -> None:
        known = await metadata.read()
        now_ms = self._clock()
        orphans = [
            orphan
            for topic in known.topics.values()
            for orphan in partitions.orphans(topic, known.assignments[topic.name], living, now_ms)
        ]
        states = []
        for (name, number), start_offset in found.log_starts.items():
            topic = known.topics.get(name)
            if topic is not None:
                before = known.state_of(topic, number)
                after = partitions.started(topic, number, before, start_offset)
                states += [] if after is None else [after]
        await metadata.write(orphans, states)
        log.info("partitions orphaned", partitions=len(orphans), starts_raised=len(states))

    # --- counters -------------------------------------------------------------------------------

    async def _raise_counters(self, streams: Sequence[Stream]) -> None:
        newest: dict[int, int] = defaultdict(lambda: -1)
        for stream in streams:
            newest[stream.broker_id] = max(newest[stream.broker_id], stream.epoch)
        for broker_id, epoch in newest.items():
            await id_allocator.raise_to(
                self._store, id_allocator.broker_epoch(str(broker_id)), epoch + 1
            )
        given = await id_allocator.read(self._store, id_allocator.PRODUCER_IDS) or 0
        first = partitions.producer_id(given, self._clock())
        await id_allocator.raise_to(self._store, id_allocator.PRODUCER_IDS, first)
        log.info("counters raised", brokers=len(newest), producer_id=first)


def _since_revision(unsettled: Unsettled) -> int:
    """The revision that separates what the snapshot had from what came after its restoration."""
    settled_count = int(unsettled.settled.value) if unsettled.settled else 0
    if unsettled.restoration_count > settled_count or unsettled.mark is None:
        return unsettled.restoration_count * REVISION_LEAP
    return unsettled.mark.mod_revision
