"""The metadata snapshot: the whole cluster as one JSON document, for external readers.

Invariants: it is derived from the other records, which are authoritative; only the controller
writes it, when it has changed. No value exceeds `PART_BYTES_MAX`: the topics of a large cluster
continue in further parts, each of which is a document with `topics` only. The first part says how
many `parts` there are, and is written last.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import BrokerInfo, Topic
from kafscale.metadata.store.base import Delete, Entry, MetadataStore, Put, unchanged

PART_BYTES_MAX: Final = 1_000_000
"""etcd limits requests to 1.5 MiB. A topic is never split: the largest has half of this."""

Document = dict[str, Any]


class SnapshotPublisher:
    """Writes snapshots to the metadata store."""

    def __init__(
        self,
        store: MetadataStore,
        cache: ClusterCache,
        topics: Mapping[str, Topic],
        cluster_id: str,
        *,
        part_bytes_max: int = PART_BYTES_MAX,
    ) -> None:
        self._store = store
        self._cache = cache
        self._topics = topics
        self._cluster_id = cluster_id
        self._part_bytes_max = part_bytes_max
        self._term = 0
        self._published: dict[str, bytes] = {}
        """The parts that were written in this term, by key."""

    async def publish(self, controller: Entry) -> int:
        """Write what has changed, while this broker is controller; return the bytes written."""
        if controller.mod_revision != self._term:
            self._published.clear()
            self._term = controller.mod_revision
            await self._read_keys()
        document = build_document(self._cache, self._topics, self._cluster_id)
        parts = encode(document, self._part_bytes_max)
        values = {keys.snapshot(number): value for number, value in enumerate(parts)}
        changed = [key for key, value in values.items() if self._published.get(key) != value]
        for key in sorted(changed, key=lambda key: key == keys.SNAPSHOT):
            await self._write(controller, Put(key, values[key]))
        for key in self._published.keys() - values.keys():
            await self._write(controller, Delete(key))
        return sum(len(values[key]) for key in changed)

    async def _read_keys(self) -> None:
        """Find the parts of earlier controllers, so that superfluous ones are deleted."""
        stored = await self._store.range(keys.SNAPSHOT)
        self._published = {entry.key: b"" for entry in stored.entries}

    async def _write(self, controller: Entry, operation: Put | Delete) -> None:
        result = await self._store.commit([unchanged(controller)], [operation])
        if not result.succeeded:
            return  # Another broker is controller now.
        if isinstance(operation, Put):
            self._published[operation.key] = operation.value
        else:
            del self._published[operation.key]


def build_document(cache: ClusterCache, topics: Mapping[str, Topic], cluster_id: str) -> Document:
    """The cluster as the cache shows it."""
    return {
        "controller_id": cache.controller_id,
        "cluster_id": cluster_id,
        "brokers": [_broker_document(cache.brokers[number]) for number in sorted(cache.brokers)],
        "topics": [_topic_document(cache, topics[name]) for name in sorted(topics)],
    }


def encode(document: Document, bytes_max: int = PART_BYTES_MAX) -> list[bytes]:
    """Encode the document as parts; a part exceeds `bytes_max` only if it has a single topic."""
    cluster = {name: value for name, value in document.items() if name != "topics"}
    topics = [msgspec.json.encode(topic) for topic in document["topics"]]
    first_bytes = len(msgspec.json.encode({**cluster, "parts": len(topics), "topics": []}))
    groups = list(_group(topics, bytes_max, first_bytes))
    if len(groups) > 1:
        cluster["parts"] = len(groups)
    documents: list[Document] = [{**cluster, "topics": groups[0]}]
    documents += [{"topics": group} for group in groups[1:]]
    return [msgspec.json.encode(each) for each in documents]


def _group(topics: list[bytes], bytes_max: int, first_bytes: int) -> Iterator[list[msgspec.Raw]]:
    """Consecutive topics that fit into one part, which begins with `first_bytes`."""
    group: list[msgspec.Raw] = []
    size_bytes = first_bytes
    for topic in topics:
        if group and size_bytes + len(topic) > bytes_max:
            yield group
            group, size_bytes = [], first_bytes
        group.append(msgspec.Raw(topic))
        size_bytes += len(topic) + 1
    yield group


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
