"""Closed topics: brokers confirm that they serve a deleted topic no more, and the controller waits.

A broker learns of a deletion by a watch, which may lag. Until then it accepts records for the topic
by name. Invariant: a name is free only when every live broker has confirmed, or its lease has ended
and it serves nothing. The controller confirms, too: another broker may become controller before the
deletion is complete. It does not wait for its own confirmation, because it knows what it serves.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kafscale.errors import OperatingError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import BrokerInfo, Topic
from kafscale.metadata.schema.topic_codec import decode_topic
from kafscale.metadata.store.base import MetadataStore, Put, unchanged
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

POLL_SECONDS: Final = 0.05
RETRY_SECONDS: Final = 0.5
WARNING_MS: Final = 10_000
"""After this time the brokers that have not confirmed are logged."""


class ClosedTopics:
    """The confirmations of this broker, and those that the controller waits for."""

    def __init__(
        self,
        store: MetadataStore,
        cache: ClusterCache,
        topic_store: TopicStore,
        *,
        broker_id: int,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._cache = cache
        self._topic_store = topic_store
        self._broker_id = broker_id
        self._clock = clock

    async def confirm(self, topic: Topic, broker: BrokerInfo) -> None:
        """Confirm, for a broker session, that it has closed a deleted topic."""
        while True:
            try:
                tombstone = await self._store.get(keys.deletion(topic.name))
                if tombstone is None:
                    return
                deleted = decode_topic(tombstone)
                if deleted.id != topic.id or deleted.emptied_ms:
                    return
                key = keys.closed_topic(topic.id, broker.id, broker.epoch)
                done = await self._store.commit(
                    [unchanged(tombstone)], [Put(key, b"", broker.lease)]
                )
            except OperatingError as error:
                logger.warning("closed topic not confirmed", topic=topic.name, reason=str(error))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                if done.succeeded:
                    return

    async def wait_until_closed(self, topic: Topic) -> None:
        """Wait until no broker serves a partition of a deleted topic."""
        started_ms = self._clock()
        is_logged = False
        while serving := await self._serving_brokers(topic):
            if not is_logged and self._clock() - started_ms >= WARNING_MS:
                is_logged = True
                logger.warning("deleted topic still open", topic=topic.name, brokers=serving)
            await asyncio.sleep(POLL_SECONDS)

    async def _serving_brokers(self, topic: Topic) -> list[int]:
        """The live brokers that have not closed a deleted topic."""
        if topic.id in self._topic_store.by_id:
            return [self._broker_id]
        others = [each for each in self._cache.brokers.values() if each.id != self._broker_id]
        if not others:
            return []
        entries = (await self._store.range(keys.closed_topics(topic.id))).entries
        confirmed = {entry.key for entry in entries}
        return sorted(
            broker.id
            for broker in others
            if keys.closed_topic(topic.id, broker.id, broker.epoch) not in confirmed
        )
