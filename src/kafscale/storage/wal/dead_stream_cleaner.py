"""Deletes the WAL objects of ended broker sessions once segments hold their records.

The controller does this for all brokers, because ended streams have no owner: its
`dead_stream_cleanup` calls `clean` with what the metadata store knows. `trimmer` deletes the
objects of streams that have an owner.

Invariants:

* Nothing is deleted because it is unknown. A stream that no session of this cluster has created is
  left alone. An object with records of a topic that neither exists nor was deleted is kept.
* Objects are deleted in order, oldest first, except that those which are kept for being unknown or
  damaged hold up no others.
* An object is deleted when, for each of its ranges, segments hold all records or the topic was
  deleted.
* A damaged object is copied to the quarantine, and deleted together with the fence.
* The fence stays until no suspended process that it stops can still wake up.
* Objects after the fence were never acknowledged, and those that the owner has trimmed are not
  needed: both are deleted at once.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum, auto

import msgspec

from kafscale.aio.gather import map_limited
from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.storage.bucket import read_wal_footer
from kafscale.storage.formats import wal_object
from kafscale.storage.objects.store import PAGE_KEYS, ObjectInfo, ObjectStore
from kafscale.storage.quarantine import keep_copy
from kafscale.storage.wal.streams import Stream, Streams

logger = get_logger(__name__)

FENCE_RETENTION_MS = 24 * 60 * 60 * 1000
"""How long a fence is kept: much longer than a process may be suspended and wake up again."""

READ_AHEAD = 16
"""How many footers are read at once, oldest objects first."""

PINS_MAX = 100_000
"""How many ranges of objects are kept in memory; others are read again at the next run."""

ABANDONED_MS = 10 * 60 * 1000
"""A stream without a live owner and without new objects for this time counts as abandoned."""


class Session(Enum):
    """What the metadata store knows of a broker session."""

    LIVE = auto()
    ENDED = auto()
    UNKNOWN = auto()
    """Its epoch was never allocated: the stream is that of another cluster, or of lost metadata."""


RolledEnds = Mapping[bytes, Mapping[int, int] | None]
"""The ends of the last segments by topic id and partition, None for a topic that was deleted.

Topics that the metadata store does not know are left out.
"""

FindRolledEnds = Callable[[Collection[bytes]], Awaitable[RolledEnds]]
"""Reads the rolled ends of topics from the metadata store; called after their records were found,
so that a topic that is missing there was not created in between.
"""

FindSession = Callable[[int, int], Session]
"""The session of a broker id and epoch."""


class CleanupResult(msgspec.Struct):
    """What one run has found."""

    deleted_count: int = 0
    unknown_objects: int = 0
    """Objects that are kept because this cluster does not know their stream or their topics."""
    unknown_topics: set[bytes] = msgspec.field(default_factory=set)
    unknown_streams: set[tuple[int, int]] = msgspec.field(default_factory=set)
    damaged_objects: int = 0
    oldest_records_ms: int | None = None
    """When the oldest object with records was written, of all streams of this cluster; without
    those that can be deleted, or are kept for being unknown or damaged.
    """


class _Pin(msgspec.Struct, frozen=True, gc=False):
    """The last offset of a partition that an object holds."""

    topic_id: bytes
    partition: int
    last_offset: int


class _Verdict(Enum):
    """Whether an object can be deleted."""

    DELETABLE = auto()
    NEEDED = auto()
    """Its records are not in segments yet, so later objects are kept as well."""
    UNKNOWN = auto()
    DAMAGED = auto()


_SETTLED = (_Verdict.DELETABLE, _Verdict.UNKNOWN, _Verdict.DAMAGED)
"""Verdicts that do not depend on what the metadata store will know later."""


class DeadStreamCleaner:
    """Deletes the objects of fenced streams."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        clock: Callable[[], int],
        *,
        pins_max: int = PINS_MAX,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._streams = Streams(store, namespace, clock)
        self._clock = clock
        self._pins_max = pins_max
        self._pins: dict[str, list[_Pin]] = {}
        """Ranges of existing objects by key, so that most footers are read once."""
        self._damaged: set[str] = set()
        """Keys of existing objects that are damaged, and copied to the quarantine."""
        self._ends: dict[bytes, Mapping[int, int] | None] = {}
        """The rolled ends that this run has read."""

    async def clean(
        self, find_rolled_ends: FindRolledEnds, find_session: FindSession
    ) -> CleanupResult:
        """Delete objects that are no longer needed.

        An abandoned stream without a fence is fenced, if this cluster has created it.
        """
        streams = await self._streams.all()
        self._forget_deleted(streams)
        self._ends = {}
        result = CleanupResult()
        for stream in streams:
            session = find_session(stream.broker_id, stream.epoch)
            if session is Session.UNKNOWN:
                result.unknown_streams.add((stream.broker_id, stream.epoch))
                result.unknown_objects += len(stream.objects)
                continue
            if session is Session.ENDED and stream.fence is not None:
                await self._clean(stream, find_rolled_ends, result)
                continue
            _note_age(stream.objects.values(), result)
            if session is Session.ENDED and self._is_abandoned(stream):
                await self._streams.fence(stream.broker_id, stream.epoch)
        return result

    def _forget_deleted(self, streams: Sequence[Stream]) -> None:
        listed = {item.key for stream in streams for item in stream.objects.values()}
        self._pins = {key: pins for key, pins in self._pins.items() if key in listed}
        self._damaged &= listed

    def _is_abandoned(self, stream: Stream) -> bool:
        newest_ms = max((item.modified_ms for item in stream.objects.values()), default=0)
        return self._clock() - newest_ms > ABANDONED_MS

    async def _clean(
        self, stream: Stream, find_rolled_ends: FindRolledEnds, result: CleanupResult
    ) -> None:
        """Delete the unneeded objects of a fenced stream."""
        assert stream.fence is not None
        if stream.after_fence and not await self._streams.is_fenced(stream):
            _note_age(stream.objects.values(), result)
            return  # The stream changed while it was listed.
        acknowledged = stream.acknowledged
        by_verdict = await self._judge(acknowledged, find_rolled_ends, result.unknown_topics)
        deletable, damaged = by_verdict[_Verdict.DELETABLE], by_verdict[_Verdict.DAMAGED]
        result.unknown_objects += len(by_verdict[_Verdict.UNKNOWN])
        result.damaged_objects += len(damaged)
        judged = {item.key for verdict in _SETTLED for item in by_verdict[verdict]}
        _note_age((item for item in acknowledged if item.key not in judged), result)
        to_delete = [*stream.after_fence, *stream.trimmed, *deletable]
        is_old = self._clock() - stream.fence.modified_ms > FENCE_RETENTION_MS
        if is_old and len(deletable) + len(damaged) == len(acknowledged):
            to_delete += [*damaged, stream.fence]
        await self._delete(to_delete)
        if to_delete:
            logger.info(
                "wal objects of fenced stream deleted",
                broker=stream.broker_id,
                epoch=stream.epoch,
                count=len(to_delete),
                garbage=len(stream.after_fence),
            )
        result.deleted_count += len(to_delete)

    async def _delete(self, items: Sequence[ObjectInfo]) -> None:
        keys = [item.key for item in items]
        for start in range(0, len(keys), PAGE_KEYS):
            await self._store.delete(keys[start : start + PAGE_KEYS])

    # --- what objects hold ----------------------------------------------------------------------

    async def _judge(
        self,
        items: Sequence[ObjectInfo],
        find_rolled_ends: FindRolledEnds,
        unknown_topics: set[bytes],
    ) -> dict[_Verdict, list[ObjectInfo]]:
        """Judge objects, from the oldest to the first one that is needed."""
        judged: dict[_Verdict, list[ObjectInfo]] = {verdict: [] for verdict in _Verdict}
        for start in range(0, len(items), READ_AHEAD):
            chunk = items[start : start + READ_AHEAD]
            await self._load_pins(chunk)
            await self._load_ends(chunk, find_rolled_ends)
            for item in chunk:
                if not judged[_Verdict.NEEDED]:
                    judged[self._verdict(item, unknown_topics)].append(item)
            if sum(map(len, self._pins.values())) > self._pins_max:
                for item in chunk:
                    self._pins.pop(item.key, None)
            if judged[_Verdict.NEEDED]:
                break
        return judged

    def _verdict(self, item: ObjectInfo, unknown_topics: set[bytes]) -> _Verdict:
        if item.key in self._damaged:
            return _Verdict.DAMAGED
        remaining, unknown = [], set()
        is_needed = False
        for pin in self._pins[item.key]:
            if pin.topic_id not in self._ends:
                unknown.add(pin.topic_id)
                remaining.append(pin)
                continue
            ends = self._ends[pin.topic_id]
            if ends is not None and ends.get(pin.partition, 0) <= pin.last_offset:
                is_needed = True
                remaining.append(pin)
        self._pins[item.key] = remaining  # Rolled ranges stay rolled; no need to check them again.
        unknown_topics |= unknown
        if is_needed:
            return _Verdict.NEEDED
        return _Verdict.UNKNOWN if unknown else _Verdict.DELETABLE

    async def _load_pins(self, items: Sequence[ObjectInfo]) -> None:
        """Read what objects hold from their footers, unless it is known."""

        async def load(item: ObjectInfo) -> None:
            try:
                ranges = await self._read_ranges(item)
            except ObjectNotFoundError:
                ranges = []  # Deleted since the listing.
            except DamagedObjectError:
                self._damaged.add(item.key)
                return
            self._pins[item.key] = [
                _Pin(range_.topic_id, range_.partition, range_.last_offset) for range_ in ranges
            ]

        new = [
            item for item in items if item.key not in self._pins and item.key not in self._damaged
        ]
        await map_limited(load, new, READ_AHEAD)

    async def _read_ranges(self, item: ObjectInfo) -> list[wal_object.Range]:
        """Read the ranges of an object; if it is damaged, copy it and raise."""
        try:
            return await read_wal_footer(self._store, item)
        except DamagedObjectError:
            data = await self._store.get(item.key)
            try:
                return wal_object.decode(item.key, data).ranges  # The read was damaged.
            except DamagedObjectError as error:
                logger.error("damaged WAL object kept", key=item.key, reason=error.reason)
                await keep_copy(self._store, self._namespace, item.key, data, error.reason)
                raise

    async def _load_ends(
        self, items: Sequence[ObjectInfo], find_rolled_ends: FindRolledEnds
    ) -> None:
        """Read how far the topics are rolled whose records were found."""
        topic_ids = {pin.topic_id for item in items for pin in self._pins.get(item.key, ())}
        if new := topic_ids.difference(self._ends):
            self._ends |= await find_rolled_ends(new)


def _note_age(items: Iterable[ObjectInfo], result: CleanupResult) -> None:
    for item in items:
        if item.size_bytes != wal_object.EMPTY_BYTES:
            oldest_ms = result.oldest_records_ms
            result.oldest_records_ms = (
                item.modified_ms if oldest_ms is None else min(oldest_ms, item.modified_ms)
            )
