"""The reaper: what the streams of the dead hold is deleted once segments hold it.

One broker does it for all, because nobody owns these streams any more. The laws: objects go in
order, the oldest first; an object goes when of each of its ranges either segments hold all records
or the topic is gone; the fence stays until no process that it is meant for can still be asleep, and
with it the object before it, without which a fence counts for nothing (see `streams`). What came
too late to count goes at once.
"""

from collections.abc import Callable, Sequence

import msgspec

from kafscale.aio.gather import together
from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.storage.formats import wal_object
from kafscale.storage.objects.store import PAGE_KEYS, ObjectInfo, ObjectStore
from kafscale.storage.wal.footer_reader import read_table
from kafscale.storage.wal.streams import Stream, Streams

log = get_logger(__name__)

FENCE_KEPT_MS = 24 * 60 * 60 * 1000
"""How long a fence outlives its stream: far longer than a process may be asleep and wake again."""

LOOKS_MAX = 16
"""How many objects are looked into at once."""

LEFT_MS = 10 * 60 * 1000
"""After this time without a word, a stream of nobody is taken for one that was left."""

RolledEnd = Callable[[bytes, int], int | None]
"""The end of the last segment of a partition, by topic id and number; None if the topic is gone."""


class _Pin(msgspec.Struct, frozen=True, gc=False):
    """Up to which offset an object holds records of a partition."""

    topic_id: bytes
    partition: int
    last_offset: int


class Reaper:
    """Deletes what is left of streams that are over."""

    def __init__(self, store: ObjectStore, namespace: str, clock: Callable[[], int]) -> None:
        self._store = store
        self._streams = Streams(store, namespace, clock)
        self._clock = clock
        self._pins: dict[str, list[_Pin]] = {}
        """What objects hold that are still there: each is looked into once."""

    async def reap(self, rolled_end: RolledEnd, is_live: Callable[[int, int], bool]) -> int:
        """Delete what nobody needs any more; return how many objects that were.

        `is_live` tells of a broker and an epoch whether they belong together now. A stream of
        nobody that has no fence gets one.
        """
        streams = await self._streams.all()
        listed = {item.key for stream in streams for item in stream.objects.values()}
        self._pins = {key: pins for key, pins in self._pins.items() if key in listed}
        count = 0
        for stream in streams:
            if is_live(stream.broker_id, stream.epoch):
                continue
            if stream.fence is not None:
                count += await self._reap(stream, rolled_end)
            elif self._is_left(stream):
                await self._streams.fence(stream.broker_id, stream.epoch)
        return count

    def _is_left(self, stream: Stream) -> bool:
        newest_ms = max((item.modified_ms for item in stream.objects.values()), default=0)
        return self._clock() - newest_ms > LEFT_MS

    async def _reap(self, stream: Stream, rolled_end: RolledEnd) -> int:
        """Delete what is superfluous of a stream that is over."""
        assert stream.fence is not None
        if stream.beyond and not await self._streams.is_over(stream):
            return 0  # The listing was of two minds, because the stream changed meanwhile.
        counting = stream.counting
        superfluous_count = await self._count_superfluous(counting, rolled_end)
        is_old = self._clock() - stream.fence.modified_ms > FENCE_KEPT_MS
        if superfluous_count == len(counting) and is_old:
            doomed = [*stream.beyond, *counting, stream.fence]
        else:
            doomed = stream.beyond + counting[:-1][:superfluous_count]
        await self._delete(doomed)
        if doomed:
            log.info(
                "wal objects deleted of a stream that is over",
                broker=stream.broker_id,
                epoch=stream.epoch,
                count=len(doomed),
                garbage=len(stream.beyond),
            )
        return len(doomed)

    async def _delete(self, items: Sequence[ObjectInfo]) -> None:
        keys = [item.key for item in items]
        for start in range(0, len(keys), PAGE_KEYS):
            await self._store.delete(keys[start : start + PAGE_KEYS])

    async def _count_superfluous(self, items: Sequence[ObjectInfo], rolled_end: RolledEnd) -> int:
        """How many of the first objects nobody needs."""
        for start in range(0, len(items), LOOKS_MAX):
            chunk = items[start : start + LOOKS_MAX]
            await together(self._look_into(item) for item in chunk)
            for number, item in enumerate(chunk, start):
                if not self._is_superfluous(item, rolled_end):
                    return number
        return len(items)

    def _is_superfluous(self, item: ObjectInfo, rolled_end: RolledEnd) -> bool:
        left = []
        for pin in self._pins[item.key]:
            end_offset = rolled_end(pin.topic_id, pin.partition)
            if end_offset is not None and end_offset <= pin.last_offset:
                left.append(pin)
        self._pins[item.key] = left  # Segments keep what they hold: nobody has to ask again.
        return not left

    async def _look_into(self, item: ObjectInfo) -> None:
        """Learn what an object holds, from its footer; a damaged one has nothing for anybody."""
        if item.key in self._pins:
            return
        found: list[wal_object.Range] = []
        try:
            if item.size_bytes != wal_object.EMPTY_BYTES:
                found = await read_table(self._store, item)
        except ObjectNotFoundError:
            log.debug("wal object is gone already", key=item.key)
        except DamagedObjectError as error:
            log.warning("damaged WAL object", key=item.key, reason=error.reason)
        self._pins[item.key] = [_Pin(one.topic_id, one.partition, one.last_offset) for one in found]
