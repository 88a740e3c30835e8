"""WAL objects whose every record is in segments are deleted: the oldest first, and in order.

This is about the stream of the present life; those that are over are left to `reaper`. The laws: an
object is deleted only after all that come before it are gone. Whoever ends a stream looks for the
first object that is missing, so a hole in the middle would hide acknowledged records. And the
newest object stays: the first that is listed of a stream is then always one that counted, never one
that overtook another on its way. For the same reason an object stays for a while of which a PUT may
still be under way: it would come back, with a gap behind it.
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

log = get_logger(__name__)


class DurableObject:
    """A WAL object, and up to which offset it holds records of which partitions."""

    __slots__ = ("kept_until_ms", "key", "pins", "size_bytes")

    def __init__(
        self, key: str, size_bytes: int, pins: Mapping[PartitionLog, int], kept_until_ms: int = 0
    ) -> None:
        self.key = key
        self.size_bytes = size_bytes
        self.pins = pins
        self.kept_until_ms = kept_until_ms
        """Until then a PUT of it may still be under way, and bring it back after a deletion."""

    def pinned_by(self) -> Iterable[PartitionLog]:
        """The partitions that have records here and nowhere else."""
        return (
            partition
            for partition, last_offset in self.pins.items()
            if not partition.deleted and last_offset >= partition.tail.rolled_offset
        )


class WalTrimmer:
    """The objects of the present stream, oldest first."""

    def __init__(
        self, store: ObjectStore, clock: Callable[[], int], random: Random, count_max: int = 1
    ) -> None:
        """`count_max` objects are deleted with one call: more than one if the store keeps order."""
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
        """Forget all objects: the stream is over."""
        self._objects.clear()
        self.size_bytes = 0

    def consider(self) -> None:
        """Look again at the oldest object: a segment has been made."""
        self._rolled.set()

    def oldest_pins(self) -> list[PartitionLog]:
        """The partitions that must be rolled before anything can be deleted."""
        return list(self._objects[0].pinned_by()) if self._objects else []

    async def run(self) -> None:
        """Delete for ever; cancel it to stop."""
        while True:
            await self._rolled.wait()
            self._rolled.clear()
            await self.trim()

    async def trim(self) -> None:
        """Delete what no partition needs any more."""
        backoff = Backoff(self._random)
        async with self._trimming:
            while superfluous := self._superfluous():
                keys = [durable.key for durable in superfluous]
                try:
                    await self._store.delete(keys)
                except OperatingError as error:
                    log.warning("wal objects not deleted", key=keys[0], error=str(error))
                    await asyncio.sleep(backoff.next_seconds())
                    continue
                for durable in superfluous:
                    if self._objects and self._objects[0] is durable:
                        self._objects.popleft()
                        self.size_bytes -= durable.size_bytes

    def _superfluous(self) -> list[DurableObject]:
        """The oldest objects, as far as no partition needs them; never the newest."""
        older = islice(self._objects, max(min(len(self._objects) - 1, self._count_max), 0))
        return list(takewhile(self._is_superfluous, older))

    def _is_superfluous(self, durable: DurableObject) -> bool:
        return self._clock() >= durable.kept_until_ms and not any(True for _ in durable.pinned_by())
