"""Trims the WAL stream of the current session: deletes objects whose records are all in segments.

`roll_scheduler` runs it on the owner of the stream, and notifies it of rolled segments.
`dead_stream_cleaner`, which the controller runs, does the same for streams that have ended; neither
calls the other.

Invariants:

* Objects are deleted in order: fencing a stream searches for the first missing object, so a gap
  would hide acknowledged records.
* An object is deleted only after a later object is acknowledged whose header says so. Otherwise a
  PUT of the object that takes effect late would create it again unnoticed, with a gap after it
  (see `streams`). So the newest object is never deleted. While no records arrive, no object can say
  more: then `needs_marker` asks for an object without records.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from random import Random

from kafscale.aio.backoff import Backoff
from kafscale.errors import OperatingError
from kafscale.observability.logging import get_logger
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.store import ObjectStore

logger = get_logger(__name__)


class DurableObject:
    """A WAL object with the last offset it holds of each log."""

    __slots__ = ("key", "pins", "sequence", "size_bytes", "trimmed_to")

    def __init__(
        self,
        key: str,
        sequence: int,
        size_bytes: int,
        pins: Mapping[PartitionLog, int],
        trimmed_to: int = 0,
    ) -> None:
        self.key = key
        self.sequence = sequence
        self.size_bytes = size_bytes
        self.pins = pins
        self.trimmed_to = trimmed_to
        """What its header says: objects below this sequence may be deleted."""


class WalTrimmer:
    """The objects of the current stream, oldest first."""

    def __init__(self, store: ObjectStore, random: Random, count_max: int = 1) -> None:
        """`count_max` objects are deleted per request: 1 unless the store deletes in order."""
        self._store = store
        self._count_max = count_max
        self._random = random
        self._objects: deque[DurableObject] = deque()
        self._deletable_to = 0
        """Segments hold all records of the objects below this sequence."""
        self._pin: tuple[PartitionLog, int] | None = None
        """A log that pins the object at `_deletable_to`; it usually still does later."""
        self._trimmed_to = 0
        """The highest `trimmed_to` of an acknowledged object."""
        self._deleted_topics: dict[bytes, int] = {}
        """Ids of deleted topics, with the sequence of the last object that may hold records."""
        self._rolled = asyncio.Event()
        self._trimming = asyncio.Lock()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, durable: DurableObject) -> None:
        """Add an object that was acknowledged."""
        self._objects.append(durable)
        self.size_bytes += durable.size_bytes
        if durable.trimmed_to > self._trimmed_to:
            self._trimmed_to = durable.trimmed_to
            self._rolled.set()

    def clear(self) -> None:
        """Drop all objects, because the stream has ended."""
        self._objects.clear()
        self._deleted_topics.clear()
        self._deletable_to = self._trimmed_to = 0
        self._pin = None
        self.size_bytes = 0

    def drop_topic(self, topic_id: bytes, last_sequence: int) -> None:
        """Keep no object for the records of a deleted topic, whichever logs it had here.

        `last_sequence` is that of the last object that may hold such records.
        """
        self._deleted_topics[topic_id] = last_sequence
        self._rolled.set()

    def notify_rolled(self) -> None:
        """Check the oldest objects again, because a segment was rolled."""
        self._rolled.set()

    def logs_pinning_oldest(self) -> list[PartitionLog]:
        """The logs that must be rolled before the oldest object can be deleted."""
        return [log for log, _ in self._pins(self._objects[0])] if self._objects else []

    def deletable_to(self) -> int:
        """The sequence up to which objects can be deleted once a later object says so."""
        if self._pin is not None and self._is_pinning(*self._pin):
            return self._deletable_to
        self._pin = None
        for durable in self._objects:
            if durable.sequence >= self._deletable_to:
                self._pin = next(self._pins(durable), None)
                if self._pin is not None:
                    break
                self._deletable_to = durable.sequence + 1
        return self._deletable_to

    @property
    def needs_marker(self) -> bool:
        """Whether objects with records can be deleted, but no acknowledged object says so."""
        deletable_to = self.deletable_to()
        return any(
            durable.pins and durable.sequence >= self._trimmed_to
            for durable in takewhile(lambda each: each.sequence < deletable_to, self._objects)
        )

    async def run(self) -> None:
        """Trim whenever a segment was rolled, until cancelled."""
        while True:
            await self._rolled.wait()
            self._rolled.clear()
            await self.trim()

    async def trim(self) -> None:
        """Delete the objects that no log needs."""
        backoff = Backoff(self._random)
        async with self._trimming:
            while deletable := self._deletable():
                keys = [durable.key for durable in deletable]
                try:
                    await self._store.delete(keys)
                except OperatingError as error:
                    logger.warning("wal objects not deleted", key=keys[0], error=str(error))
                    await asyncio.sleep(backoff.next_seconds())
                    continue
                for durable in deletable:
                    if self._objects and self._objects[0] is durable:
                        self._remove_oldest()

    def _remove_oldest(self) -> None:
        removed = self._objects.popleft()
        self.size_bytes -= removed.size_bytes
        self._deleted_topics = {
            topic_id: newest
            for topic_id, newest in self._deleted_topics.items()
            if newest > removed.sequence
        }

    def _deletable(self) -> list[DurableObject]:
        """The oldest objects, if an acknowledged object says that they are deleted."""
        oldest = islice(self._objects, self._count_max)
        return [durable for durable in oldest if durable.sequence < self._trimmed_to]

    def _pins(self, durable: DurableObject) -> Iterator[tuple[PartitionLog, int]]:
        """The logs that have records only in this object, with the last of their offsets."""
        return (pin for pin in durable.pins.items() if self._is_pinning(*pin))

    def _is_pinning(self, log: PartitionLog, last_offset: int) -> bool:
        return last_offset >= log.tail.rolled_offset and log.topic_id not in self._deleted_topics
