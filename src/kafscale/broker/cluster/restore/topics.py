"""Which topics exist, if the restored metadata is older than the bucket. Pure.

There are three sources: the restored metadata; the topic catalog in the bucket, which says at which
revision of the metadata it was written; and the objects, whose names and dates show that a topic
was written to. Invariants:

1. The newer source decides about a topic, and the revisions say which one that is: a topic that a
   newer catalog does not list is deleted; one that it lists exists, with the id it has there.
2. What was written shortly before the catalog, or later, is not deleted because the catalog does
   not list it yet: the topic is recreated, with default settings where nothing else is known.
3. Without a catalog that is verified to be this cluster's, no topic counts as deleted; nor if all
   metadata was lost.
4. The number of partitions never shrinks: it is the largest number of all sources.

A deleted topic gets a tombstone, so that its objects are deleted in the usual way; objects that
no record of a deletion covers are kept. If its name was used again since, the tombstone says that
its objects are deleted: the new topic has its id in the keys of its objects. Next to a topic
without, a tombstone is wrong itself, and is removed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec
from msgspec.structs import replace

from kafscale.metadata.schema.model import TOPIC_ID_BYTES, Topic
from kafscale.metadata.topics import names as topics_names
from kafscale.storage.recovery.bucket_scan import BucketScan, PartitionScan, TopicScan
from kafscale.storage.topic_catalog import CatalogTopic
from kafscale.text.topic_partition import id_of_directory, topic_directory

CATALOG_LATE_MS: Final = 10_000
"""How much later than a topic's records the catalog may be dated without listing it: PUTs take
time.
"""


class TopicRepair(msgspec.Struct, frozen=True, kw_only=True):
    """The repair of a topic name for which the metadata is wrong."""

    name: str
    before: Topic | None
    after: Topic | None
    tombstone_before: Topic | None
    tombstone_after: Topic | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class TopicEvidence:
    """Everything that is known of topics, from all sources."""

    topics: Mapping[str, Topic]
    """From the restored metadata, like the tombstones."""
    tombstones: Mapping[str, Topic]
    known_revision: int
    """The snapshot is complete up to this revision, at least."""
    since_revision: int
    """Later revisions were written after the restore."""
    inventory: BucketScan
    cluster_id: str
    namespace: str
    now_ms: int
    new_id: Callable[[], bytes]

    def repairs(self) -> Iterator[TopicRepair]:
        """What has to change, by name."""
        names = {*self.topics, *self.tombstones, *self._listed, *self.inventory.topics}
        for name in sorted(filter(topics_names.is_legal, names)):
            repair = self._repair(name)
            if (repair.before, repair.tombstone_before) != (repair.after, repair.tombstone_after):
                yield repair

    def deleted_ids(self) -> set[bytes]:
        """Ids of topics with records in the WAL that are proven to be deleted."""
        if not self._is_catalog_verified:
            return set()
        return {
            topic_id
            for name in filter(topics_names.is_legal, self.inventory.topics)
            for existing in [self._existing(name)[0]]
            for topic_id, scan in self._scan_of(name).in_wal.items()
            if (existing is None or existing.id != topic_id) and not self._is_recent(scan)
        }

    def _repair(self, name: str) -> TopicRepair:
        after, reason = self._existing(name)
        return TopicRepair(
            name=name,
            before=self.topics.get(name),
            after=after,
            tombstone_before=self.tombstones.get(name),
            tombstone_after=self._retired(after) if after else self._tombstone(name),
            reason=reason,
        )

    # --- topics that exist ----------------------------------------------------------------------

    def _existing(self, name: str) -> tuple[Topic | None, str]:
        """The topic that exists under a name, if any, and the reason."""
        known, listed = self.topics.get(name), self._listed.get(name)
        if listed is not None and self._catalog_wins(listed, known):
            return self._merged(listed, known), "the bucket's topic catalog lists it"
        if known is not None and not (self._is_deleted(known) or self._is_too_new(known)):
            return self._with_all_partitions(known), "the bucket has more partitions of it"
        recreated = self._recreated(name)
        if recreated is not None:
            return recreated, "the bucket has records of it"
        return None, "the bucket's topic catalog does not list it"

    def _catalog_wins(self, listed: CatalogTopic, known: Topic | None) -> bool:
        """Whether the catalog, and not the metadata, is right about a topic that it lists."""
        tombstone = self.tombstones.get(listed.name)
        if not _is_id(listed.topic_id) or (tombstone and tombstone.id.hex() == listed.topic_id):
            return False
        if known is None:
            return not self._is_catalog_verified or self._catalog_revision > self.known_revision
        if known.id.hex() == listed.topic_id or known.create_revision >= self.since_revision:
            return True
        if self._is_catalog_verified:
            return self._catalog_revision >= known.create_revision
        return not self._catalog_cluster_id

    def _is_deleted(self, known: Topic) -> bool:
        """Whether a topic that the catalog does not list was deleted after the snapshot."""
        return (
            self._is_catalog_verified
            and known.create_revision < self.since_revision
            and known.create_revision <= self._catalog_revision
        )

    def _is_too_new(self, known: Topic) -> bool:
        """Whether a topic was created after the restore, while there are records of another one."""
        return (
            known.create_revision >= self.since_revision
            and known.id not in self._scan_of(known.name).in_wal
            and bool(self._recently_written(known.name))
        )

    def _merged(self, listed: CatalogTopic, known: Topic | None) -> Topic:
        """The topic as the catalog lists it, with newer facts from the metadata."""
        if known is not None and known.id.hex() == listed.topic_id:
            topic = replace(known, partitions=max(known.partitions, listed.partition_count))
            if listed.config_version > known.version:
                topic = replace(topic, configs=listed.configs, version=listed.config_version)
            return self._with_all_partitions(topic)
        return self._with_all_partitions(
            self._topic(
                listed.name,
                listed.id,
                max(listed.partition_count, 1),
                configs=listed.configs,
                created_ms=listed.created_ms,
                version=max(listed.config_version, 1),
                id_in_keys=listed.id_in_keys,
            )
        )

    def _with_all_partitions(self, topic: Topic) -> Topic:
        """The topic with all partitions that have records."""
        scan = self._scan_of(topic.name)
        in_wal = scan.in_wal.get(topic.id, PartitionScan())
        objects = scan.objects.get(topic.directory, PartitionScan())
        count = max(topic.partitions, objects.partition_count, in_wal.partition_count)
        return topic if count == topic.partitions else replace(topic, partitions=count)

    def _recreated(self, name: str) -> Topic | None:
        """An unlisted topic that was written to too recently to be a deleted one."""
        scans, objects = self._recently_written(name), self._scan_of(name).objects
        if scans:
            topic_id = max(scans, key=lambda each: scans[each].newest_ms)
            is_reused = topic_directory(name, topic_id) in objects or any(
                each.create_revision < self.since_revision for each in self._recorded(name)
            )
            count = scans[topic_id].partition_count
            return self._with_all_partitions(
                self._topic(name, topic_id, count, id_in_keys=is_reused)
            )
        former = self._recorded(name)
        gone = {each.directory for each in former} | ({name} if former else set())
        recent = {
            directory: scan
            for directory, scan in objects.items()
            if directory not in gone and self._is_recent(scan)
        }
        return self._newest(name, recent)

    def _recorded(self, name: str) -> list[Topic]:
        """The topic and the deleted topic of this name in the metadata, if any."""
        return [each for each in (self.topics.get(name), self.tombstones.get(name)) if each]

    def _newest(self, name: str, objects: Mapping[str, PartitionScan]) -> Topic | None:
        """The topic of the directory that was written last; None if there are no objects."""
        if not objects:
            return None
        directory = max(objects, key=lambda each: objects[each].newest_ms)
        topic_id = id_of_directory(directory)
        return self._topic(
            name,
            topic_id or self.new_id(),
            objects[directory].partition_count,
            id_in_keys=topic_id is not None,
        )

    def _recently_written(self, name: str) -> Mapping[bytes, PartitionScan]:
        """Recent WAL records of topics of this name that are not in the metadata, by topic id."""
        recorded_ids = {topic.id for topic in self._recorded(name)}
        return {
            topic_id: scan
            for topic_id, scan in self._scan_of(name).in_wal.items()
            if topic_id not in recorded_ids and self._is_recent(scan)
        }

    def _is_recent(self, scan: PartitionScan) -> bool:
        return not self._is_catalog_verified or (
            scan.newest_ms >= self.inventory.catalog_ms - CATALOG_LATE_MS
        )

    # --- topics that do not exist ---------------------------------------------------------------

    def _tombstone(self, name: str) -> Topic | None:
        """The tombstone that leads to the deletion of a topic's objects.

        Objects of which neither the metadata nor the catalog says that they were deleted are kept.
        """
        former = self.topics.get(name) or self.tombstones.get(name)
        deleted_ids = self._deleted_ids
        proven = {
            directory: scan
            for directory, scan in self._scan_of(name).objects.items()
            if id_of_directory(directory) in deleted_ids
        }
        return former or self._newest(name, proven)

    def _retired(self, current: Topic) -> Topic | None:
        """The tombstone that stays next to a topic whose name was used before."""
        if not current.id_in_keys:
            return None
        former = self.tombstones.get(current.name) or self.topics.get(current.name)
        if former is None or former.id == current.id:
            return None
        return former if former.emptied_ms else replace(former, emptied_ms=self.now_ms)

    # --- sources --------------------------------------------------------------------------------

    @cached_property
    def _listed(self) -> Mapping[str, CatalogTopic]:
        catalog = self.inventory.catalog
        return {topic.name: topic for topic in catalog.topics} if catalog else {}

    @property
    def _deleted_ids(self) -> frozenset[bytes]:
        """The topics that a verified catalog lists as deleted."""
        catalog = self.inventory.catalog
        return catalog.deleted_ids if catalog and self._is_catalog_verified else frozenset()

    @property
    def _catalog_cluster_id(self) -> str:
        return self.inventory.catalog.cluster_id if self.inventory.catalog else ""

    @property
    def _catalog_revision(self) -> int:
        return self.inventory.catalog.revision if self.inventory.catalog else 0

    @property
    def _is_catalog_verified(self) -> bool:
        """Whether the catalog is this cluster's, and says at which revision it was written.

        If all metadata was lost, only the catalog itself says whose it is.
        """
        return (
            self._catalog_revision > 0
            and self._catalog_cluster_id == self.cluster_id
            and self.known_revision > 0
        )

    def _scan_of(self, name: str) -> TopicScan:
        return self.inventory.topics.get(name) or TopicScan.empty()

    def _topic(
        self,
        name: str,
        topic_id: bytes,
        partition_count: int,
        *,
        configs: Mapping[str, str] | None = None,
        created_ms: int = 0,
        version: int = 1,
        id_in_keys: bool = False,
    ) -> Topic:
        return Topic(
            name=name,
            id=topic_id,
            partitions=partition_count,
            configs=configs or {},
            created_ms=created_ms or self.now_ms,
            namespace=self.namespace,
            version=version,
            id_in_keys=id_in_keys,
        )


def _is_id(text: str) -> bool:
    try:
        return len(bytes.fromhex(text)) == TOPIC_ID_BYTES
    except ValueError:
        return False
