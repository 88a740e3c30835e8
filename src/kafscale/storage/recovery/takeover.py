"""Taking logs over: from segments and, where their last owner has died, the streams of the dead.

Streams are listed before segments. A former owner that is still awake can then only make segments
of what it has, and delete what these hold. If it, or the reaper, does so while the WAL is read, the
logs are opened again: what is missing there is in segments now.

Offsets that should be somewhere and are nowhere are believed to be missing only when that is seen
twice. Then it is said aloud, and the log is served without them: what else it holds is worth more
than nothing, and readers get on with what follows the hole.
"""

from collections.abc import Callable, Sequence

import msgspec

from kafscale.errors import ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.recovery.log_opener import Opener, PartitionToOpen
from kafscale.storage.recovery.wal_replay import Contents, Hole, Replay
from kafscale.storage.wal.streams import Stream, Streams

log = get_logger(__name__)

TRIES_MAX = 10
"""How often the WAL may change while it is read, before whoever wants the logs has to ask again."""


class Taken(msgspec.Struct, frozen=True):
    """Logs that hold all that there is, and have no owner yet."""

    logs: list[PartitionLog]
    recovered_bytes: int
    holes: list[Hole]

    def close(self) -> None:
        _close(self.logs)


class Takeover:
    """Opens logs that others have written."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        streams: Streams,
        opener: Opener,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._streams = streams
        self._opener = opener
        self._clock = clock
        self._contents: Contents = {}
        """What objects of the dead hold, as far as they were read: they never change."""

    async def take(self, partitions: Sequence[PartitionToOpen]) -> Taken:
        """All logs, complete; or, where the store fails, none."""
        is_second_look = False
        for tries_left in reversed(range(TRIES_MAX)):
            try:
                taken = await self._try(partitions)
            except ObjectNotFoundError as error:
                if not tries_left:
                    raise
                log.warning("wal changed while it was read", error=str(error))
                continue
            if not taken.holes or is_second_look or not tries_left:
                break
            taken.close()
            is_second_look = True
        for hole in taken.holes:
            hole.tell()
        return taken

    async def _try(self, partitions: Sequence[PartitionToOpen]) -> Taken:
        is_orphaned = [not (one.fully_rolled or one.is_new) for one in partitions]
        streams = await self._streams.fenced() if any(is_orphaned) else []
        opened = await self._opener.open(partitions, self._clock())
        try:
            orphans = [found for found, is_one in zip(opened, is_orphaned, strict=True) if is_one]
            replay = await self._read(streams, orphans)
        except BaseException:
            _close(opened)
            raise
        holes = replay.give(self._clock())
        for found, one in zip(opened, partitions, strict=True):
            holes += _complete(found, one)
        return Taken(opened, replay.recovered_bytes, holes)

    async def _read(self, streams: Sequence[Stream], logs: Sequence[PartitionLog]) -> Replay:
        replay = Replay(self._store, self._namespace, logs, self._contents)
        await replay.read(streams)
        there = {item.key for stream in streams for item in stream.counting}
        self._contents = {key: held for key, held in self._contents.items() if key in there}
        return replay


def _complete(found: PartitionLog, one: PartitionToOpen) -> list[Hole]:
    """Let a log not end before the end that is remembered of it; what is missing is returned."""
    known_to = max(found.end_offset, found.start_offset)
    if found.end_offset < one.end_offset:
        found.resume(one.end_offset)
    return [Hole(found, known_to, one.end_offset)] if known_to < one.end_offset else []


def _close(logs: Sequence[PartitionLog]) -> None:
    for opened in logs:
        opened.close()
