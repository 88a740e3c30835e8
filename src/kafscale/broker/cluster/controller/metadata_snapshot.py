"""The snapshot: the whole cluster as one JSON document, for readers that want it in one piece.

The laws: it is derived from the other records, which are the truth; it is written by the controller
alone, when it has changed. It never outgrows what the store takes: where a cluster is too large,
the partitions are left out first, then the topics that come last, and it says so.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kafscale.metadata.cluster.cluster_cache import ClusterView
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import BrokerInfo, Topic
from kafscale.metadata.store.base import Entry, MetadataStore, Put, unchanged
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

BYTES_MAX: Final = 1_000_000

Document = dict[str, Any]


class Publisher:
    """Writes snapshots."""

    def __init__(
        self, store: MetadataStore, view: ClusterView, topics: Mapping[str, Topic], cluster_id: str
    ) -> None:
        self._store = store
        self._view = view
        self._topics = topics
        self._cluster_id = cluster_id
        self._published: tuple[int, bytes] | None = None
        """What was written last, and in which term."""
        self._is_told = False

    async def publish(self, controller: Entry) -> None:
        """Write the snapshot, if it has changed and we are still controller."""
        value, is_whole = encode(document(self._view, self._topics, self._cluster_id))
        if not is_whole and not self._is_told:
            log.warning("metadata snapshot cut short", size_bytes_max=BYTES_MAX)
        self._is_told = not is_whole
        news = (controller.mod_revision, value)
        if news != self._published:
            done = await self._store.commit([unchanged(controller)], [Put(keys.SNAPSHOT, value)])
            if done.succeeded:
                self._published = news


def document(view: ClusterView, topics: Mapping[str, Topic], cluster_id: str) -> Document:
    """The cluster as it is seen."""
    return {
        "controller_id": view.controller_id,
        "cluster_id": cluster_id,
        "brokers": [_broker(view.brokers[number]) for number in sorted(view.brokers)],
        "topics": [_topic(view, topics[name]) for name in sorted(topics)],
    }


def encode(whole: Document, bytes_max: int = BYTES_MAX) -> tuple[bytes, bool]:
    """The document as JSON that is not too long, and whether it is the whole document."""
    value = msgspec.json.encode(whole)
    if len(value) <= bytes_max:
        return value, True
    topics = [{**topic, "partitions": []} for topic in whole["topics"]]
    while True:
        value = msgspec.json.encode({**whole, "topics": topics, "truncated": True})
        if len(value) <= bytes_max or not topics:
            return value, False
        topics = topics[: len(topics) * 9 // 10]


def _broker(broker: BrokerInfo) -> Document:
    return {"id": broker.id, "host": broker.host, "port": broker.port, "rack": broker.rack}


def _topic(view: ClusterView, topic: Topic) -> Document:
    partitions: list[Document] = []
    for number in range(topic.partitions):
        leader, leader_epoch = view.leader(topic.name, number)
        partitions.append({"id": number, "leader": leader, "leader_epoch": leader_epoch})
    return {
        "name": topic.name,
        "topic_id": topic.id.hex(),
        "partition_count": topic.partitions,
        "partitions": partitions,
    }
