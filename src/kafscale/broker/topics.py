"""Creation of topics, and the clean-up of deleted ones.

The topic store is the source of truth, and partition owners follow it. The controller deletes the
objects of a deleted topic, also for deletions that an earlier controller did not finish; only then
may the name be reused. An owner may still write a segment before it learns of the deletion, so the
controller lists and deletes, with pauses, until there is nothing left.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from kafscale.errors import KafscaleError, TopicExistsError
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

RETRY_SECONDS: Final = 5.0

WaitForLeaders = Callable[[Topic], Awaitable[None]]
"""Waits until a topic's partitions have leaders."""

DeleteObjects = Callable[[str], Awaitable[int]]
"""Deletes all objects of a deleted topic; returns how many there were."""


class Topics:
    """Creates topics, and completes their deletion."""

    def __init__(
        self,
        topic_store: TopicStore,
        *,
        wait_for_leaders: WaitForLeaders,
        delete_objects: DeleteObjects,
        linger_seconds: Callable[[], float],
        clock: Callable[[], int],
    ) -> None:
        """`linger_seconds` returns how long owners may still write what they have begun."""
        self._topic_store = topic_store
        self._wait_for_leaders = wait_for_leaders
        self._delete_objects = delete_objects
        self._linger_seconds = linger_seconds
        self._clock = clock
        self._deletions: dict[bytes, asyncio.Task[None]] = {}

    async def create(
        self, name: str, partition_count: int, configs: Mapping[str, str], timeout_ms: int
    ) -> Topic:
        """Create a topic; when this returns, its partitions have leaders, or soon will."""
        topic = await self._topic_store.create(
            name, partition_count, configs, self._clock(), uuid.uuid4().bytes, timeout_ms=timeout_ms
        )
        await self._wait_for_leaders(topic)
        return topic

    async def create_if_missing(self, name: str, partition_count: int, timeout_ms: int) -> bool:
        """Create a topic unless it exists; returns whether this call created it."""
        if name in self._topic_store.topics:
            return False
        try:
            await self.create(name, partition_count, {}, timeout_ms)
        except TopicExistsError:
            return False
        return True

    async def grow(self, name: str, partition_count: int) -> Topic:
        """Add partitions to a topic, which have leaders when this returns, or soon will."""
        topic = await self._topic_store.grow(name, partition_count)
        await self._wait_for_leaders(topic)
        return topic

    # --- deletions ----------------------------------------------------------------------------

    def finish_deletions(self) -> None:
        """Complete all pending deletions, in tasks; a duty of the controller."""
        for topic in self._topic_store.deletions.values():
            if topic.id not in self._deletions:
                deletion = asyncio.get_running_loop().create_task(self._delete(topic))
                self._deletions[topic.id] = deletion

    async def close(self) -> None:
        """Leave deletions to the next controller."""
        deletions, self._deletions = self._deletions, {}
        for deletion in deletions.values():
            deletion.cancel()
        await asyncio.gather(*deletions.values(), return_exceptions=True)

    async def _delete(self, topic: Topic) -> None:
        while True:
            try:
                # A new topic may have the same name by now, and would own these objects.
                while await self._topic_store.is_deleting(topic.name, topic.id):
                    if not await self._delete_objects(topic.name):
                        break
                    await asyncio.sleep(self._linger_seconds())
                await self._topic_store.finish_deletion(topic.name, topic.id)
            except KafscaleError as error:
                logger.warning(
                    "topic deletion failed; retrying", topic=topic.name, error=str(error)
                )
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._deletions.pop(topic.id, None)
                return
