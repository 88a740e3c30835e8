"""Which topics there are, where metadata was restored that is older than the bucket. Pure.

Three know of topics: the restored metadata; the catalog in the bucket, which says at which revision
of the metadata it was true; and objects, which tell by their names and dates that something was
written. The laws:

1. Whoever is newer is right about a topic, and the revisions say who that is: a topic that a newer
   catalog does not list is deleted, one that it lists exists, with the id that it says there.
2. What was written shortly before the catalog, or later, is not deleted because the catalog does
   not know it yet: the topic is made again, with its defaults where nobody knows better.
3. Without a catalog that is proven to be this cluster's, nothing is taken for deleted.
4. Partitions only become more: as many as anybody knows of.

What is deleted gets a tombstone, so that its remains go in the usual way; a tombstone of a topic
whose name was taken again since is itself wrong, and goes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec
from msgspec.structs import replace

from kafscale.metadata.schema.model import TOPIC_ID_BYTES, Topic
from kafscale.metadata.topics import names as topics_names
from kafscale.storage.recovery.bucket_scan import FoundTopic, Inventory, Trace
from kafscale.storage.topic_catalog import CatalogTopic

CATALOG_LATE_MS: Final = 10_000
"""How much later than a topic the catalog may be dated and still not list it: PUTs take time."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What is to become of a name for which the metadata are not right as they are."""

    name: str
    before: Topic | None
    after: Topic | None
    tombstone_before: Topic | None
    tombstone_after: Topic | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that is known of topics, by whomever."""

    topics: Mapping[str, Topic]
    """Of the restored metadata, as the tombstones."""
    tombstones: Mapping[str, Topic]
    known_revision: int
    """Up to this revision, at least, the snapshot knew everything."""
    since_revision: int
    """What has a later revision came after the restoration."""
    inventory: Inventory
    cluster_id: str
    namespace: str
    now_ms: int
    new_id: Callable[[], bytes]

    def verdicts(self) -> Iterator[Verdict]:
        """What has to change, by name."""
        names = {*self.topics, *self.tombstones, *self._listed, *self.inventory.topics}
        for name in sorted(filter(topics_names.is_legal, names)):
            verdict = self._judge(name)
            if (verdict.before, verdict.tombstone_before) != (
                verdict.after,
                verdict.tombstone_after,
            ):
                yield verdict

    def _judge(self, name: str) -> Verdict:
        after, reason = self._existing(name)
        return Verdict(
            name=name,
            before=self.topics.get(name),
            after=after,
            tombstone_before=self.tombstones.get(name),
            tombstone_after=None if after else self._tombstone(name),
            reason=reason,
        )

    # --- what exists ----------------------------------------------------------------------------

    def _existing(self, name: str) -> tuple[Topic | None, str]:
        """The topic that exists under a name, if one does, and what tells so."""
        known, listed = self.topics.get(name), self._listed.get(name)
        if listed is not None and self._is_right(listed, known):
            return self._merged(listed, known), "the catalog of the bucket lists it"
        if known is not None and not (self._is_deleted(known) or self._is_too_new(known)):
            return self._grown(known), "the bucket has more of its partitions"
        made_again = self._made_again(name)
        if made_again is not None:
            return made_again, "there are records of it"
        return None, "the catalog of the bucket does not list it"

    def _is_right(self, listed: CatalogTopic, known: Topic | None) -> bool:
        """Whether the catalog, and not the metadata, is right about a topic that it lists."""
        tombstone = self.tombstones.get(listed.name)
        if not _is_id(listed.topic_id) or (tombstone and tombstone.id.hex() == listed.topic_id):
            return False
        if known is None:
            return not self._is_proven or self._catalog_revision > self.known_revision
        if known.id.hex() == listed.topic_id or known.create_revision >= self.since_revision:
            return True
        if self._is_proven:
            return self._catalog_revision >= known.create_revision
        return not self._catalog_cluster_id

    def _is_deleted(self, known: Topic) -> bool:
        """Whether a topic that the catalog does not list was deleted after the snapshot."""
        return (
            self._is_proven
            and known.create_revision < self.since_revision
            and known.create_revision <= self._catalog_revision
        )

    def _is_too_new(self, known: Topic) -> bool:
        """Whether a topic was made after the restoration, where there are records of another."""
        return (
            known.create_revision >= self.since_revision
            and known.id not in self._found(known.name).in_wal
            and bool(self._written_lately(known.name))
        )

    def _merged(self, listed: CatalogTopic, known: Topic | None) -> Topic:
        """A topic as the catalog lists it, with what the metadata know better."""
        if known is not None and known.id.hex() == listed.topic_id:
            topic = replace(known, partitions=max(known.partitions, listed.partition_count))
            if listed.config_version > known.version:
                topic = replace(topic, configs=listed.configs, version=listed.config_version)
            return self._grown(topic)
        return self._grown(
            self._topic(
                listed.name,
                bytes.fromhex(listed.topic_id),
                max(listed.partition_count, 1),
                configs=listed.configs,
                created_ms=listed.created_ms,
                version=max(listed.config_version, 1),
            )
        )

    def _grown(self, topic: Topic) -> Topic:
        """A topic with all the partitions that there are records of."""
        found = self._found(topic.name)
        in_wal = found.in_wal.get(topic.id, Trace())
        count = max(topic.partitions, found.objects.partition_count, in_wal.partition_count)
        return topic if count == topic.partitions else replace(topic, partitions=count)

    def _made_again(self, name: str) -> Topic | None:
        """A topic that nobody lists, and that was written to too lately to be a deleted one."""
        traces, objects = self._written_lately(name), self._found(name).objects
        if traces:
            topic_id = max(traces, key=lambda each: traces[each].newest_ms)
            return self._grown(self._topic(name, topic_id, traces[topic_id].partition_count))
        is_gone = name in self.topics or name in self.tombstones
        if objects.partition_count and not is_gone and self._is_recent(objects):
            return self._topic(name, self.new_id(), objects.partition_count)
        return None

    def _written_lately(self, name: str) -> Mapping[bytes, Trace]:
        """What the WAL holds of topics of a name that the metadata do not know, by their ids."""
        gone = (self.topics.get(name), self.tombstones.get(name))
        gone_ids = {topic.id for topic in gone if topic is not None}
        return {
            topic_id: trace
            for topic_id, trace in self._found(name).in_wal.items()
            if topic_id not in gone_ids and self._is_recent(trace)
        }

    def _is_recent(self, trace: Trace) -> bool:
        return not self._is_proven or (
            trace.newest_ms >= self.inventory.catalog_ms - CATALOG_LATE_MS
        )

    # --- what does not --------------------------------------------------------------------------

    def _tombstone(self, name: str) -> Topic | None:
        """What sees to it that nothing is left of a topic that does not exist."""
        gone = self.topics.get(name) or self.tombstones.get(name)
        left_count = self._found(name).objects.partition_count
        if gone is None and left_count:
            return self._topic(name, self.new_id(), left_count)
        return gone

    # --- who says so ----------------------------------------------------------------------------

    @cached_property
    def _listed(self) -> Mapping[str, CatalogTopic]:
        catalog = self.inventory.catalog
        return {topic.name: topic for topic in catalog.topics} if catalog else {}

    @property
    def _catalog_cluster_id(self) -> str:
        return self.inventory.catalog.cluster_id if self.inventory.catalog else ""

    @property
    def _catalog_revision(self) -> int:
        return self.inventory.catalog.revision if self.inventory.catalog else 0

    @property
    def _is_proven(self) -> bool:
        """Whether the catalog is this cluster's, and says when it was true."""
        return self._catalog_revision > 0 and self._catalog_cluster_id == self.cluster_id

    def _found(self, name: str) -> FoundTopic:
        return self.inventory.topics.get(name) or FoundTopic.nothing()

    def _topic(
        self,
        name: str,
        topic_id: bytes,
        partition_count: int,
        *,
        configs: Mapping[str, str] | None = None,
        created_ms: int = 0,
        version: int = 1,
    ) -> Topic:
        return Topic(
            name=name,
            id=topic_id,
            partitions=partition_count,
            configs=configs or {},
            created_ms=created_ms or self.now_ms,
            namespace=self.namespace,
            version=version,
        )


def _is_id(text: str) -> bool:
    try:
        return len(bytes.fromhex(text)) == TOPIC_ID_BYTES
    except ValueError:
        return False
