"""The WAL streams of all brokers: how they begin, which of them are over, and how they are ended.

Each life of a broker writes a stream of its own (`_wal/{broker}/{epoch}/`), whose objects count up
to the first that is missing: what comes after a gap was never acknowledged, because objects count
in order. A stream is ended by a fence, create-only, in the first free place, so that a process that
still believes in its epoch cannot add to it any more; if it was faster, its object counts and the
next place is tried. What lies beyond a fence is garbage.

A fence counts only while the object before it is there. The owner of a stream may be so fast that
it has written, rolled and trimmed since somebody looked for a free place, and has left that place
behind: a fence there stops nobody. It trims in order and never its newest object, so as long as the
one before the fence is there, the owner has not been beyond it. Whoever deletes objects of a fenced
stream leaves that one, therefore, as long as the fence is to stay.

Every life opens its stream with an empty object before it looks at the others. Of two lives that
begin at the same time, at least one so sees the other: the older gives up, or is fenced by the
younger.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec

from kafscale.aio.gather import together
from kafscale.errors import (
    DamagedObjectError,
    FencedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreUnavailableError,
)
from kafscale.observability.logging import get_logger
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

log = get_logger(__name__)

FENCING_TRIES_MAX = 20
"""How often a place for a fence is looked for, while the owner of the stream goes on."""

TAKING_BACK_TRIES_MAX = 10
"""How often a fence that must not stay is deleted before that is left to its harmlessness."""

LOOKS_MAX = 32
"""How many small objects are looked into at once."""

Objects = dict[int, ObjectInfo]
"""The objects of one stream, by sequence."""


class Stream(msgspec.Struct, frozen=True, gc=False):
    """What a listing shows of a stream."""

    broker_id: int
    epoch: int
    objects: Objects
    """All that is no fence, in order."""
    fence: ObjectInfo | None = None
    fence_sequence: int = -1

    @property
    def counting(self) -> list[ObjectInfo]:
        """The objects that count of a stream that is over.

        Below a fence everything does: it was contiguous once, and has been trimmed since.
        """
        assert self.fence is not None
        return [item for number, item in self.objects.items() if number < self.fence_sequence]

    @property
    def beyond(self) -> list[ObjectInfo]:
        """The objects that came too late to count."""
        assert self.fence is not None
        return [item for number, item in self.objects.items() if number > self.fence_sequence]

    @property
    def first_free(self) -> int:
        """The first place that is not taken; the first object is always one that counted."""
        sequence = min(self.objects, default=0)
        while sequence in self.objects:
            sequence += 1
        return sequence


class Streams:
    """The streams in a namespace."""

    def __init__(self, store: ObjectStore, namespace: str, clock: Callable[[], int]) -> None:
        self._store = store
        self._namespace = namespace
        self._clock = clock
        self._looks = asyncio.Semaphore(LOOKS_MAX)

    # --- looking ------------------------------------------------------------------------------

    async def all(self) -> list[Stream]:
        """The streams of all lives of all brokers."""
        return await self._find(object_keys.wal_root(self._namespace))

    async def fenced(self) -> list[Stream]:
        """The streams that are over."""
        return [stream for stream in await self.all() if stream.fence is not None]

    async def newest_epoch(self, broker_id: int) -> int:
        """The epoch of the last life of a broker that the store knows of, or -1."""
        listed = await self._list(object_keys.wal_prefix(self._namespace, broker_id))
        return max((epoch for _, epoch in listed), default=-1)

    async def is_over(self, stream: Stream) -> bool:
        """Whether a fence that a listing shows does end its stream; a listing takes a while."""
        assert stream.fence is not None
        try:
            is_fence = await self._is_fence(stream.fence.key)
        except ObjectNotFoundError:
            return False
        return is_fence and await self._is_effective(stream, stream.fence_sequence)

    async def _find(self, prefix: str) -> list[Stream]:
        listed = await self._list(prefix)
        return await together(
            self._look_into(*place, objects) for place, objects in sorted(listed.items())
        )

    async def _list(self, prefix: str) -> dict[tuple[int, int], Objects]:
        """The objects of streams, by broker and epoch."""
        listed: dict[tuple[int, int], Objects] = defaultdict(dict)
        async for chunk in self._store.list(prefix):
            for item in chunk:
                place = object_keys.parse_wal(self._namespace, item.key)
                if place is None:
                    log.warning("object ignored that is no WAL object", key=item.key)
                else:
                    listed[place.broker_id, place.epoch][place.sequence] = item
        return listed

    async def _look_into(self, broker_id: int, epoch: int, listed: Objects) -> Stream:
        """Tell fences from what counts."""
        objects, fences = dict(listed), {}
        for number, item in listed.items():
            if item.size_bytes != wal_object.EMPTY_BYTES or (number == 0 and 1 in listed):
                continue  # It holds records, or it is what opened the stream.
            try:
                is_fence = await self._is_fence(item.key)
            except ObjectNotFoundError:
                del objects[number]  # Trimmed or taken back since the listing.
                continue
            if is_fence:
                fences[number] = objects.pop(number)
        counting = [number for number in fences if not objects or number - 1 in objects]
        if not counting:
            return Stream(broker_id, epoch, objects)
        return Stream(broker_id, epoch, objects, fences[max(counting)], max(counting))

    async def _is_fence(self, key: str) -> bool:
        async with self._looks:
            data = await self._store.get(key)
        try:
            return wal_object.decode(key, data).header.is_fence
        except DamagedObjectError:
            return False

    # --- beginning ----------------------------------------------------------------------------

    async def begin(self, broker_id: int, epoch: int) -> str:
        """Take the first place of a new stream, so that others know of it; return its key."""
        key = object_keys.wal_key(self._namespace, broker_id, epoch, 0)
        parts = wal_object.encode_opening(wal_object.Header(broker_id, epoch, 0, self._clock()))
        try:
            await self._store.put(key, parts, create=True)
        except ObjectExistsError:
            # It may be ours: a store's client that tries again meets its own first success.
            if bytes(await self._store.get(key)) != b"".join(parts):
                raise FencedError(f"epoch {epoch} is somebody else's, or over") from None
        return key

    # --- ending -------------------------------------------------------------------------------

    async def end_earlier(self, broker_id: int, epoch: int) -> None:
        """End the streams of all earlier lives of a broker."""
        streams = await self._find(object_keys.wal_prefix(self._namespace, broker_id))
        if any(stream.epoch > epoch for stream in streams):
            raise FencedError(f"epoch {epoch} is over: there is a later one")
        for stream in streams:
            if stream.epoch < epoch:
                await self._end(stream)

    async def end(self, streams: Iterable[Stream]) -> int:
        """End streams that a listing has shown; return how many of them were not over yet."""
        going_on = [stream for stream in streams if stream.fence is None]
        for stream in going_on:
            await self._end(stream)
        return len(going_on)

    async def fence(self, broker_id: int, epoch: int) -> None:
        """End a stream, which may be over already, or may never have begun."""
        await self._end(await self._look(broker_id, epoch))

    async def _look(self, broker_id: int, epoch: int) -> Stream:
        found = await self._find(object_keys.stream_prefix(self._namespace, broker_id, epoch))
        return found[0] if found else Stream(broker_id, epoch, {})

    async def _end(self, stream: Stream) -> None:
        for _ in range(FENCING_TRIES_MAX):
            if stream.fence is not None or await self._put_fence(stream):
                return
            stream = await self._look(stream.broker_id, stream.epoch)
        raise StoreUnavailableError(
            f"the stream of broker {stream.broker_id}, epoch {stream.epoch}, outruns its fence"
        )

    async def _put_fence(self, stream: Stream) -> bool:
        """Put a fence into the first place that is free; whether it ends the stream."""
        sequence = stream.first_free
        while True:
            key = object_keys.wal_key(self._namespace, stream.broker_id, stream.epoch, sequence)
            header = wal_object.Header(
                stream.broker_id, stream.epoch, sequence, self._clock(), is_fence=True
            )
            try:
                await self._store.put(key, wal_object.encode_fence(header), create=True)
            except ObjectExistsError:
                try:
                    if not await self._is_fence(key):
                        sequence += 1  # The owner was faster: its object counts.
                        continue
                except ObjectNotFoundError:
                    return False
            if await self._is_effective(stream, sequence):
                log.info(
                    "wal stream fenced",
                    broker=stream.broker_id,
                    epoch=stream.epoch,
                    sequence=sequence,
                )
                return True
            await self._take_back(key)
            return False

    async def _is_effective(self, stream: Stream, sequence: int) -> bool:
        """Whether the owner has not been beyond a fence that was just seen, or put."""
        if sequence == 0:
            prefix = object_keys.stream_prefix(self._namespace, stream.broker_id, stream.epoch)
            return all(set(objects) == {0} for objects in (await self._list(prefix)).values())
        key = object_keys.wal_key(self._namespace, stream.broker_id, stream.epoch, sequence - 1)
        try:
            start = await self._store.get_range(key, 0, wal_object.HEADER_BYTES)
            return not wal_object.decode_header(key, start).is_fence
        except ObjectNotFoundError:
            return False
        except DamagedObjectError:
            return True  # Nobody can read it, but it is there.

    async def _take_back(self, key: str) -> None:
        """Delete a fence that came too late; one that cannot be deleted is in nobody's way."""
        for _ in range(TAKING_BACK_TRIES_MAX):
            try:
                await self._store.delete([key])
            except StoreUnavailableError as error:
                log.warning("fence not taken back", key=key, error=str(error))
            else:
                return
