"""Publishes the topics of the topic store in the bucket's topic catalog."""

from collections.abc import Mapping

from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics.store import TopicStore
from kafscale.storage.topic_catalog import CatalogTopic, CatalogWriter


class TopicCatalogPublisher:
    """Writes the topic catalog for readers without etcd; used by the controller only."""

    def __init__(self, writer: CatalogWriter, topic_store: TopicStore) -> None:
        self._writer = writer
        self._topic_store = topic_store

    async def publish(self, topics: Mapping[str, Topic]) -> None:
        """Write the topics, if they have changed."""
        await self._writer.write(
            map(_listed, topics.values()), self._topic_store.revision, self._topic_store.deleted_ids
        )

    async def publish_restored(self) -> None:
        """Replace a catalog from which the topics were restored."""
        await self._writer.replace(
            map(_listed, self._topic_store.topics.values()),
            self._topic_store.revision,
            self._topic_store.deleted_ids,
        )

    def on_elected(self) -> None:
        """Read the catalog again: another controller may have written it since."""
        self._writer.forget()


def _listed(topic: Topic) -> CatalogTopic:
    return CatalogTopic(
        topic.name,
        topic.id.hex(),
        topic.partitions,
        topic.configs,
        topic.created_ms,
        topic.version,
        topic.id_in_keys,
    )
