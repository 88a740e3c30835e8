"""Creation of topics, and the clean-up of deleted ones.

The topic store is the source of truth, and partition owners follow it. A new topic never meets
objects that it does not own: if there are any under its name, it has its id in the keys of its
objects. The controller completes a deletion, also one that an earlier controller did not finish:

1. It waits until every other live broker has confirmed that it serves the topic no more. So no
   broker acknowledges a record for the old topic after the name is used again.
2. It deletes the objects. From then on the name can be used again, for a topic with its id in the
   keys of its objects.
3. A write of a former owner may take effect much later, and leaves an object that no topic owns.
   After `SWEEP_AFTER_MS` the controller deletes such objects. It forgets the deletion, and with it
   that the name was used, after `FORGET_AFTER_MS`.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from kafscale.errors import KafscaleError, OperatingError, TopicExistsError
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.store.base import Entry
from kafscale.metadata.topics.store import Replicas, TopicStore
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

RETRY_SECONDS: Final = 5.0

LISTING_SECONDS_MAX: Final = 5.0
"""How long the creation of a topic waits for a listing of the bucket."""

SWEEP_AFTER_MS: Final = 24 * 60 * 60 * 1000
FORGET_AFTER_MS: Final = 2 * SWEEP_AFTER_MS
"""Longer than a sweep, or a write, of a suspended process can take."""

WaitForLeaders = Callable[[Topic], Awaitable[None]]
"""Waits until a topic's partitions have leaders."""

WaitUntilClosed = Callable[[Topic], Awaitable[None]]
"""Waits until no broker serves a deleted topic."""

HasObjects = Callable[[str], Awaitable[bool]]
"""Whether there are objects of a topic, by its directory."""

DeleteObjects = Callable[[str], Awaitable[int]]
"""Deletes all objects of a topic, by its directory; returns how many there were."""


class Topics:
    """Creates topics, and completes their deletion."""

    def __init__(
        self,
        topic_store: TopicStore,
        *,
        wait_for_leaders: WaitForLeaders,
        wait_until_closed: WaitUntilClosed,
        has_objects: HasObjects,
        delete_objects: DeleteObjects,
        clock: Callable[[], int],
    ) -> None:
        self._topic_store = topic_store
        self._wait_for_leaders = wait_for_leaders
        self._wait_until_closed = wait_until_closed
        self._has_objects = has_objects
        self._delete_objects = delete_objects
        self._clock = clock
        self._deletions: dict[bytes, asyncio.Task[None]] = {}
        self._swept: set[bytes] = set()

    async def create(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str],
        timeout_ms: int,
        replicas: Replicas | None = None,
    ) -> Topic:
        """Create a topic; when this returns, its partitions have leaders, or soon will."""
        self._topic_store.check_new(name, partition_count)
        topic = await self._topic_store.create(
            name,
            partition_count,
            configs,
            self._clock(),
            uuid.uuid4().bytes,
            id_in_keys=await self._is_directory_used(name),
            replicas=replicas,
            timeout_ms=timeout_ms,
        )
        await self._wait_for_leaders(topic)
        return topic

    async def _is_directory_used(self, name: str) -> bool:
        """Whether there are objects that a topic with the published layout would meet.

        They may be left from before metadata was lost, or put there by another program. In doubt
        the answer is yes.
        """
        try:
            async with asyncio.timeout(LISTING_SECONDS_MAX):
                is_used = await self._has_objects(name)
        except (OperatingError, TimeoutError) as error:
            logger.warning(
                "objects not listed; the new topic has its id in keys",
                topic=name,
                reason=str(error) or "timed out",
            )
            return True
        if is_used:
            logger.warning("unknown objects kept; the new topic has its id in keys", topic=name)
        return is_used

    async def create_if_missing(self, name: str, partition_count: int, timeout_ms: int) -> bool:
        """Create a topic unless it exists; returns whether this call created it."""
        if name in self._topic_store.topics:
            return False
        try:
            await self.create(name, partition_count, {}, timeout_ms)
        except TopicExistsError:
            return False
        return True

    async def grow(
        self, name: str, partition_count: int, replicas: Sequence[tuple[int, ...]] = ()
    ) -> Topic:
        """Add partitions to a topic, which have leaders when this returns, or soon will."""
        topic = await self._topic_store.grow(name, partition_count, replicas)
        await self._wait_for_leaders(topic)
        return topic

    # --- deletions, duties of the controller ------------------------------------------------------

    def finish_deletions(self, controller: Entry) -> None:
        """Complete all pending deletions, in tasks."""
        for topic in self._topic_store.deletions.values():
            if topic.id not in self._deletions:
                deletion = asyncio.get_running_loop().create_task(self._delete(topic, controller))
                self._deletions[topic.id] = deletion

    async def end_term(self) -> None:
        """Leave deletions to the next controller."""
        deletions, self._deletions = self._deletions, {}
        for deletion in deletions.values():
            deletion.cancel()
        await asyncio.gather(*deletions.values(), return_exceptions=True)

    async def sweep(self, controller: Entry) -> None:
        """Delete objects that were written after their topic was deleted; forget old deletions."""
        for tombstone in list(self._topic_store.retired.values()):
            age_ms = self._clock() - tombstone.emptied_ms
            if age_ms >= FORGET_AFTER_MS:
                await self._topic_store.remove_tombstone(tombstone, controller)
                self._swept.discard(tombstone.id)
            elif age_ms >= SWEEP_AFTER_MS and tombstone.id not in self._swept:
                await self._sweep(tombstone)
                self._swept.add(tombstone.id)

    async def _sweep(self, tombstone: Topic) -> None:
        """Delete the objects under the keys of a deleted topic, and of an older one without id.

        While there is a tombstone, no new topic uses these keys. Unknown objects are kept.
        """
        current = await self._topic_store.read(tombstone.name)
        directories = {tombstone.directory}
        if tombstone.earlier_without_id:
            directories.add(tombstone.name)
        for directory in directories:
            if current is None or current.directory != directory:
                await self._delete_objects(directory)

    async def _delete(self, topic: Topic, controller: Entry) -> None:
        while True:
            try:
                await self._wait_until_closed(topic)
                await self._delete_objects(topic.directory)
                await self._topic_store.mark_emptied(topic, self._clock(), controller)
            except KafscaleError as error:
                logger.warning(
                    "topic deletion failed; retrying", topic=topic.name, error=str(error)
                )
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._deletions.pop(topic.id, None)
                return
