"""Topics as a whole: how they come into being, and what is left to do when they are deleted.

The catalog is the truth, and owners follow it. The objects of a deleted topic are removed by the
controller, also those of deletions that an earlier one did not finish; only then is the name free
again. Owners may still be about to write a segment when they learn of the deletion, so what is
found is removed until nothing is, with a pause in between.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from kafscale.errors import KafscaleError, TopicExistsError
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

RETRY_SECONDS: Final = 5.0

Led = Callable[[Topic], Awaitable[None]]
"""Waits until a topic's partitions have leaders."""

DeleteObjects = Callable[[str], Awaitable[int]]
"""Removes all objects of a topic that nobody serves any more; returns how many there were."""


class Topics:
    """Creates topics, and finishes their deletions."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        led: Led,
        delete_objects: DeleteObjects,
        linger_seconds: Callable[[], float],
        clock: Callable[[], int],
    ) -> None:
        """`linger_seconds` tells how long others may still write what they have begun."""
        self._catalog = catalog
        self._led = led
        self._delete_objects = delete_objects
        self._linger_seconds = linger_seconds
        self._clock = clock
        self._deletions: dict[bytes, asyncio.Task[None]] = {}

    async def create(
        self, name: str, partition_count: int, configs: Mapping[str, str], timeout_ms: int
    ) -> Topic:
        """Create a topic; when this returns, its partitions have leaders, or soon will."""
        topic = await self._catalog.create(
            name, partition_count, configs, self._clock(), uuid.uuid4().bytes, timeout_ms=timeout_ms
        )
        await self._led(topic)
        return topic

    async def create_if_missing(self, name: str, partition_count: int, timeout_ms: int) -> bool:
        """Create a topic because a client has named it; whether nobody else was faster."""
        if name in self._catalog.topics:
            return False
        try:
            await self.create(name, partition_count, {}, timeout_ms)
        except TopicExistsError:
            return False
        return True

    async def grow(self, name: str, partition_count: int) -> Topic:
        """Give a topic more partitions, which have leaders when this returns, or soon will."""
        topic = await self._catalog.grow(name, partition_count)
        await self._led(topic)
        return topic

    # --- deletions ----------------------------------------------------------------------------

    def finish_deletions(self) -> None:
        """See to all deletions that are under way, as the controller does."""
        for topic in self._catalog.deletions.values():
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
                # Under the same name, there may be another topic by now, whose objects these are.
                while await self._catalog.is_deleting(topic.name, topic.id):
                    if not await self._delete_objects(topic.name):
                        break
                    await asyncio.sleep(self._linger_seconds())
                await self._catalog.finish_deletion(topic.name, topic.id)
            except KafscaleError as error:
                log.warning("topic not deleted yet", topic=topic.name, error=str(error))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._deletions.pop(topic.id, None)
                return
