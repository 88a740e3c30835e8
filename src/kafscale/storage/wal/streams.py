"""WAL streams: how a broker session creates its stream, and how streams are found and fenced.

Each broker session writes one stream (`_wal/{broker}/{epoch}/`), a sequence of objects. Objects are
acknowledged in order, so objects after the first missing one were never acknowledged. A stream is
ended by a fence: an empty object, created with create-only at the first free sequence. A process
that still uses its epoch then cannot append. If that process creates its object first, the
object is acknowledged and the next sequence is tried. Objects after a fence are garbage.

A PUT may take effect long after its response was given up, so an object that was deleted may come
back at any time. Therefore the owner deletes objects only after a later object is acknowledged
whose header says so: `trimmed_to`. It never deletes its newest object. So the object with the
highest sequence says which of the others count: those below its `trimmed_to` are ignored, however
they came to exist.

A fence is not effective if the owner has written, rolled and trimmed objects since the free
sequence was determined, and is past it. Then `trimmed_to` of the newest object is above the fence.

Every broker session creates its stream with an empty first object before it lists the others. Of
two sessions that start at the same time, at least one sees the other: the older one stops, or is
fenced by the newer one.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from kafscale.aio.gather import gather_or_cancel
from kafscale.errors import (
    DamagedObjectError,
    FencedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreUnavailableError,
)
from kafscale.observability.logging import get_logger
from kafscale.storage.bucket import READS_MAX, list_objects
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

logger = get_logger(__name__)

FENCE_TRIES_MAX = 20
"""Attempts to place a fence while the owner keeps appending to the stream."""

LIST_TRIES_MAX = 10
"""How often a stream may change while it is read."""

REMOVE_FENCE_TRIES_MAX = 10
"""Attempts to delete an ineffective fence; one that remains is harmless."""

Objects = dict[int, ObjectInfo]
"""The objects of one stream, by sequence."""


class Stream(msgspec.Struct, frozen=True, gc=False):
    """A stream as a listing shows it."""

    broker_id: int
    epoch: int
    objects: Objects
    """All objects except fences and trimmed ones, in order."""
    fence: ObjectInfo | None = None
    fence_sequence: int = -1
    trimmed: tuple[ObjectInfo, ...] = ()
    """Objects that the owner has trimmed, and that still exist, or exist again."""
    trimmed_to: int | None = None
    """All objects below this sequence were acknowledged; None if there is no gap to judge."""

    @property
    def acknowledged(self) -> list[ObjectInfo]:
        """The acknowledged objects of a fenced stream.

        All objects below the fence: they were contiguous, and some have been trimmed since.
        """
        assert self.fence is not None
        return [item for number, item in self.objects.items() if number < self.fence_sequence]

    @property
    def with_records(self) -> list[ObjectInfo]:
        """The acknowledged objects that hold records, also of a stream without a fence."""
        end = self.first_free_sequence if self.fence is None else self.fence_sequence
        return [
            item
            for number, item in self.objects.items()
            if number < end and item.size_bytes != wal_object.EMPTY_BYTES
        ]

    @property
    def after_fence(self) -> list[ObjectInfo]:
        """Objects written after the fence; never acknowledged."""
        assert self.fence is not None
        return [item for number, item in self.objects.items() if number > self.fence_sequence]

    @property
    def first_free_sequence(self) -> int:
        """The first unused sequence. Without a gap, all objects are acknowledged."""
        sequence = min(self.objects, default=0) if self.trimmed_to is None else self.trimmed_to
        while sequence in self.objects:
            sequence += 1
        return sequence


class Streams:
    """The WAL streams of a namespace."""

    def __init__(self, store: ObjectStore, namespace: str, clock: Callable[[], int]) -> None:
        self._store = store
        self._namespace = namespace
        self._clock = clock
        self._reads = asyncio.Semaphore(READS_MAX)
        self._known_fences: dict[ObjectInfo, bool] = {}
        """Which objects without records are fences: brokers that crash often leave many of them."""

    # --- listing --------------------------------------------------------------------------------

    async def all(self) -> list[Stream]:
        """The streams of all sessions of all brokers."""
        listed = await self._list(object_keys.wal_root(self._namespace))
        existing = {item for objects in listed.values() for item in objects.values()}
        self._known_fences = {
            item: is_fence for item, is_fence in self._known_fences.items() if item in existing
        }
        return await self._inspect_all(listed)

    async def fenced(self) -> list[Stream]:
        """The streams that have ended."""
        return [stream for stream in await self.all() if stream.fence is not None]

    async def newest_epoch(self, broker_id: int) -> int:
        """The epoch of the newest stream of a broker, or -1."""
        listed = await self._list(object_keys.wal_prefix(self._namespace, broker_id))
        return max((epoch for _, epoch in listed), default=-1)

    async def is_fenced(self, stream: Stream) -> bool:
        """Whether the listed fence of a stream is effective; the listing may be outdated."""
        current = await self._find_one(stream.broker_id, stream.epoch)
        return current.fence is not None and current.fence_sequence == stream.fence_sequence

    async def _find(self, prefix: str) -> list[Stream]:
        return await self._inspect_all(await self._list(prefix))

    async def _inspect_all(self, listed: dict[tuple[int, int], Objects]) -> list[Stream]:
        return await gather_or_cancel(
            self._inspect_current(*stream_id, objects)
            for stream_id, objects in sorted(listed.items())
        )

    async def _find_one(self, broker_id: int, epoch: int) -> Stream:
        streams = await self._find(object_keys.stream_prefix(self._namespace, broker_id, epoch))
        return streams[0] if streams else Stream(broker_id, epoch, {})

    async def _list(self, prefix: str) -> dict[tuple[int, int], Objects]:
        """The objects of streams, by broker and epoch."""
        listed: dict[tuple[int, int], Objects] = defaultdict(dict)
        async for ref, item in list_objects(self._store, self._namespace, prefix):
            if isinstance(ref, object_keys.WalRef):
                listed[ref.broker_id, ref.epoch][ref.sequence] = item
            else:
                logger.warning("unknown object in WAL prefix ignored", key=item.key)
        return listed

    async def _inspect_current(self, broker_id: int, epoch: int, listed: Objects) -> Stream:
        """Inspect a stream; list it again if its owner has trimmed it meanwhile."""
        for _ in range(LIST_TRIES_MAX):
            try:
                return await self._inspect(broker_id, epoch, listed)
            except ObjectNotFoundError:
                prefix = object_keys.stream_prefix(self._namespace, broker_id, epoch)
                listed = (await self._list(prefix)).get((broker_id, epoch), {})
        raise StoreUnavailableError(
            f"the stream of broker {broker_id}, epoch {epoch}, changed whenever it was read"
        )

    async def _inspect(self, broker_id: int, epoch: int, listed: Objects) -> Stream:
        """Separate fences and trimmed objects from the objects that count.

        Raises `ObjectNotFoundError` if an object was trimmed since the listing, which may also lack
        objects that were written since: without the first, the others would look complete.
        """
        objects, fences = dict(listed), {}
        for number, item in listed.items():
            if item.size_bytes != wal_object.EMPTY_BYTES or (number == 0 and 1 in listed):
                continue  # It holds records, or is the first object of the stream.
            if item not in self._known_fences:
                self._known_fences[item] = await self._is_fence(item.key)
            if self._known_fences[item]:
                fences[number] = objects.pop(number)
        trimmed_to = await self._trimmed_to(objects, max(fences, default=-1))
        start = trimmed_to or 0
        effective = max((number for number in fences if number >= start), default=-1)
        return Stream(
            broker_id,
            epoch,
            {number: item for number, item in objects.items() if number >= start},
            fences.get(effective),
            effective,
            tuple(item for number, item in objects.items() if number < start),
            trimmed_to,
        )

    async def _trimmed_to(self, objects: Objects, fence_sequence: int) -> int | None:
        """Which objects are trimmed, if it matters: if there is a gap, or an object after a fence.

        A damaged object is skipped: an older one says less, but nothing wrong.
        """
        numbers = sorted(objects, reverse=True)
        if not numbers:
            return None
        has_gap = numbers[0] - numbers[-1] >= len(numbers)
        if not has_gap and not 0 <= fence_sequence < numbers[0]:
            return None
        for number in numbers:
            with suppress(DamagedObjectError):
                return (await self._read_header(objects[number].key)).trimmed_to
        return None

    async def _read_header(self, key: str) -> wal_object.Header:
        """Read a header from the start of an object, or if it is damaged there, from the end."""
        async with self._reads:
            start = await self._store.get_range(key, 0, wal_object.HEADER_BYTES)
        try:
            return wal_object.decode_header(key, start)
        except DamagedObjectError:
            async with self._reads:
                end = await self._store.get_suffix(key, wal_object.FOOTER_BYTES)
            return wal_object.decode_header(key, end)

    async def _is_fence(self, key: str) -> bool:
        reason = ""
        for _ in range(2):  # The first response may have been damaged on the way.
            async with self._reads:
                data = await self._store.get(key)
            try:
                return wal_object.decode(key, data).header.is_fence
            except DamagedObjectError as error:
                reason = error.reason
        logger.error("damaged WAL object", key=key, reason=reason)
        with suppress(DamagedObjectError):
            return wal_object.salvage(key, data)[0].is_fence
        return False

    # --- creating -------------------------------------------------------------------------------

    async def create(self, broker_id: int, epoch: int) -> str:
        """Create the first object of a new stream, so that others see it; return its key."""
        key = object_keys.wal_key(self._namespace, broker_id, epoch, 0)
        parts = wal_object.encode_empty(wal_object.Header(broker_id, epoch, 0, self._clock()))
        try:
            await self._store.put(key, parts, create=True)
        except ObjectExistsError:
            # It may be ours: a client that retries a PUT finds its own first attempt.
            if bytes(await self._store.get(key)) != b"".join(parts):
                raise FencedError(f"epoch {epoch} is fenced or used by another process") from None
        return key

    # --- fencing --------------------------------------------------------------------------------

    async def fence_earlier(self, broker_id: int, epoch: int) -> None:
        """Fence the streams of all earlier sessions of a broker."""
        streams = await self._find(object_keys.wal_prefix(self._namespace, broker_id))
        if any(stream.epoch > epoch for stream in streams):
            raise FencedError(f"epoch {epoch} has ended: a newer one exists")
        for stream in streams:
            if stream.epoch < epoch:
                await self._fence(stream)

    async def fence_all(self, streams: Iterable[Stream]) -> int:
        """Fence listed streams; return how many of them had no fence yet."""
        unfenced = [stream for stream in streams if stream.fence is None]
        for stream in unfenced:
            await self._fence(stream)
        return len(unfenced)

    async def fence(self, broker_id: int, epoch: int) -> None:
        """Fence a stream, which may have ended already, or may not exist."""
        await self._fence(await self._find_one(broker_id, epoch))

    async def _fence(self, stream: Stream) -> None:
        for _ in range(FENCE_TRIES_MAX):
            if stream.fence is not None or await self._put_fence(stream):
                return
            stream = await self._find_one(stream.broker_id, stream.epoch)
        raise StoreUnavailableError(
            f"could not fence the stream of broker {stream.broker_id}, epoch {stream.epoch}:"
            " its owner appends faster"
        )

    async def _put_fence(self, stream: Stream) -> bool:
        """Put a fence at the first free sequence; return whether it is effective."""
        sequence = stream.first_free_sequence
        while True:
            key = object_keys.wal_key(self._namespace, stream.broker_id, stream.epoch, sequence)
            header = wal_object.Header(
                stream.broker_id, stream.epoch, sequence, self._clock(), is_fence=True
            )
            try:
                await self._store.put(key, wal_object.encode_empty(header), create=True)
            except ObjectExistsError:
                try:
                    if not await self._is_fence(key):
                        sequence += 1  # The owner was first: its object is acknowledged.
                        continue
                except ObjectNotFoundError:
                    return False
            # Listed after the PUT: an owner that was past the fence is seen now.
            if (await self._find_one(stream.broker_id, stream.epoch)).fence is not None:
                logger.info(
                    "wal stream fenced",
                    broker=stream.broker_id,
                    epoch=stream.epoch,
                    sequence=sequence,
                )
                return True
            await self._remove_fence(key)
            return False

    async def _remove_fence(self, key: str) -> None:
        """Delete an ineffective fence; one that cannot be deleted is harmless."""
        for _ in range(REMOVE_FENCE_TRIES_MAX):
            try:
                await self._store.delete([key])
            except StoreUnavailableError as error:
                logger.warning("fence not removed", key=key, error=str(error))
            else:
                return
