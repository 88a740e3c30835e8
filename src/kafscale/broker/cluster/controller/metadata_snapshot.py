"""The metadata snapshot: the whole cluster as one JSON document, for external readers.

Invariants: it is derived from the other records, which are authoritative; only the controller
writes it, when it has changed. It never exceeds the store's value limit: for a large cluster the
partitions are left out first, then the last topics, and `truncated` is set.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import BrokerInfo, Topic
from kafscale.metadata.store.base import Entry, MetadataStore, Put, unchanged
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

BYTES_MAX: Final = 1_000_000

Document = dict[str, Any]


class SnapshotPublisher:
    """Writes snapshots to the metadata store."""

    def __init__(
        self,
        store: MetadataStore,
        cache: ClusterCache,
        topics: Mapping[str, Topic],
        cluster_id: str,
    ) -> None:
        self._store = store
        self._cache = cache
        self._topics = topics
        self._cluster_id = cluster_id
        self._published: tuple[int, bytes] | None = None
        """The last written snapshot, and its term."""
        self._is_truncation_logged = False

    async def publish(self, controller: Entry) -> None:
        """Write the snapshot, if it has changed and this broker is still controller."""
        value, is_complete = encode(build_document(self._cache, self._topics, self._cluster_id))
        if not is_complete and not self._is_truncation_logged:
            logger.warning("metadata snapshot truncated", size_bytes_max=BYTES_MAX)
        self._is_truncation_logged = not is_complete
        snapshot = (controller.mod_revision, value)
        if snapshot != self._published:
            result = await self._store.commit([unchanged(controller)], [Put(keys.SNAPSHOT, value)])
            if result.succeeded:
                self._published = snapshot


def build_document(cache: ClusterCache, topics: Mapping[str, Topic], cluster_id: str) -> Document:
    """The cluster as the cache shows it."""
    return {
        "controller_id": cache.controller_id,
        "cluster_id": cluster_id,
        "brokers": [_broker_document(cache.brokers[number]) for number in sorted(cache.brokers)],
        "topics": [_topic_document(cache, topics[name]) for name in sorted(topics)],
    }


def encode(document: Document, bytes_max: int = BYTES_MAX) -> tuple[bytes, bool]:
    """Encode the document within `bytes_max`; also return whether it is complete."""
    value = msgspec.json.encode(document)
    if len(value) <= bytes_max:
        return value, True
    topics = [{**topic, "partitions": []} for topic in document["topics"]]
    while True:
        value = msgspec.json.encode({**document, "topics": topics, "truncated": True})
        if len(value) <= bytes_max or not topics:
            return value, False
        topics = topics[: len(topics) * 9 // 10]


def _broker_document(broker: BrokerInfo) -> Document:
    return {"id": broker.id, "host": broker.host, "port": broker.port, "rack": broker.rack}


def _topic_document(cache: ClusterCache, topic: Topic) -> Document:
    partitions: list[Document] = []
    for number in range(topic.partitions):
        leader, leader_epoch = cache.leader(topic.name, number)
        partitions.append({"id": number, "leader": leader, "leader_epoch": leader_epoch})
    return {
        "name": topic.name,
        "topic_id": topic.id.hex(),
        "partition_count": topic.partitions,
        "partitions": partitions,
    }
