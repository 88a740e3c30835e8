"""Trims the WAL stream of the current session: deletes objects whose records are all in segments.

`roll_scheduler` runs it on the owner of the stream, and notifies it of rolled segments.
`dead_stream_cleaner`, which the controller runs, does the same for streams that have ended; neither
calls the other.

Invariants:

* Objects are deleted in order: fencing a stream searches for the first missing object, so a gap
  would hide acknowledged records.
* The newest object is never deleted, so the first listed object of a stream is always an
  acknowledged one and not one that overtook another.
* For the same reason an object is kept while a PUT of it may still be in flight: the PUT would
  create it again, with a gap after it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
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

    __slots__ = ("delete_after_ms", "key", "pins", "size_bytes")

    def __init__(
        self, key: str, size_bytes: int, pins: Mapping[PartitionLog, int], delete_after_ms: int = 0
    ) -> None:
        self.key = key
        self.size_bytes = size_bytes
        self.pins = pins
        self.delete_after_ms = delete_after_ms
        """Until then a PUT may still be in flight and create the object again."""

    def pinning_logs(self) -> Iterable[PartitionLog]:
        """The logs that have records only here."""
        return (
            log
            for log, last_offset in self.pins.items()
            if not log.deleted and last_offset >= log.tail.rolled_offset
        )


class WalTrimmer:
    """The objects of the current stream, oldest first."""

    def __init__(
        self, store: ObjectStore, clock: Callable[[], int], random: Random, count_max: int = 1
    ) -> None:
        """`count_max` objects are deleted per request: 1 unless the store deletes in order."""
        self._store = store
        self._count_max = count_max
        self._clock = clock
        self._random = random
        self._objects: deque[DurableObject] = deque()
        self._rolled = asyncio.Event()
        self._trimming = asyncio.Lock()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, durable: DurableObject) -> None:
        self._objects.append(durable)
        self.size_bytes += durable.size_bytes

    def clear(self) -> None:
        """Drop all objects, because the stream has ended."""
        self._objects.clear()
        self.size_bytes = 0

    def notify_rolled(self) -> None:
        """Check the oldest objects again, because a segment was rolled."""
        self._rolled.set()

    def logs_pinning_oldest(self) -> list[PartitionLog]:
        """The logs that must be rolled before the oldest object can be deleted."""
        return list(self._objects[0].pinning_logs()) if self._objects else []

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
                        self._objects.popleft()
                        self.size_bytes -= durable.size_bytes

    def _deletable(self) -> list[DurableObject]:
        """The oldest objects that no log needs; never includes the newest object."""
        older = islice(self._objects, max(min(len(self._objects) - 1, self._count_max), 0))
        return list(takewhile(self._is_deletable, older))

    def _is_deletable(self, durable: DurableObject) -> bool:
        return self._clock() >= durable.delete_after_ms and not any(
            True for _ in durable.pinning_logs()
        )
