"""Replay: what streams that are over hold for some logs becomes the tails of these logs.

A log may have records in many streams, because each of its owners wrote into a stream of its own.
They are put in the order of their offsets, whichever stream they come from; what segments, or other
streams, hold already is left out.

A damaged object that is followed by another was whole once, and acknowledged: that is said aloud,
and the rest is read. One at the very end of a stream was never whole. An object that is gone
meanwhile raises `ObjectNotFoundError`: segments hold its records, but perhaps none that the logs
know of.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from operator import attrgetter

import msgspec

from kafscale.errors import DamagedObjectError
from kafscale.observability.logging import get_logger
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.batch_run import Run
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.storage.wal.streams import Stream

log = get_logger(__name__)

READS_MAX = 16
"""How many objects are read at once: it hides the latency of a bucket, and bounds the memory."""


class Hole(msgspec.Struct, frozen=True, gc=False):
    """Offsets of a log that should be somewhere, and are nowhere."""

    log: PartitionLog
    from_offset: int
    to_offset: int

    def tell(self) -> None:
        log.error(
            "offsets missing",
            topic=self.log.topic,
            partition=self.log.partition,
            from_offset=self.from_offset,
            to_offset=self.to_offset,
        )


Contents = dict[str, list[tuple[bytes, int, int]]]
"""What objects hold, by key: topic ids, partitions, and the last offsets of each."""


class Replay:
    """Reads streams for some logs: each object once, however many logs there are."""

    def __init__(
        self, store: ObjectStore, namespace: str, logs: Iterable[PartitionLog], contents: Contents
    ) -> None:
        """What is in `contents`, and has nothing for the logs, is not read; what is read is."""
        self._store = store
        self._namespace = namespace
        self._logs = {(wanted.topic_id, wanted.partition): wanted for wanted in logs}
        self._known = contents
        self._runs: dict[PartitionLog, list[Run]] = defaultdict(list)
        self.recovered_bytes = 0

    async def read(self, streams: Sequence[Stream]) -> None:
        """Collect what the streams hold beyond what the logs have in segments."""
        newest = {stream.counting[-1].key for stream in streams if stream.counting}
        items = (item for item in _with_records(streams) if self._may_help(item.key))
        async with aclosing(self._contents(items)) as contents:
            async for item, data in contents:
                self._take(item.key, data, is_last=item.key in newest)

    def give(self, now_ms: int) -> list[Hole]:
        """Give the logs what was found; return what is missing in between."""
        holes = []
        for wanted, runs in self._runs.items():
            for run in sorted(runs, key=attrgetter("base_offset")):
                known_to = max(wanted.end_offset, wanted.start_offset)
                if run.base_offset > known_to:
                    holes.append(Hole(wanted, known_to, run.base_offset))
                wanted.recover(run, now_ms)
        self._runs.clear()
        return holes

    async def _contents(
        self, items: Iterator[ObjectInfo]
    ) -> AsyncGenerator[tuple[ObjectInfo, memoryview], None]:
        """Objects in their order, each with what it holds; those that follow are read meanwhile."""
        reads: deque[tuple[ObjectInfo, asyncio.Task[memoryview]]] = deque()
        try:
            while True:
                for item in islice(items, READS_MAX - len(reads)):
                    reads.append((item, asyncio.create_task(self._get(item.key))))
                if not reads:
                    return
                item, read = reads.popleft()
                yield item, await read
        finally:
            for _, read in reads:
                read.cancel()
            await asyncio.gather(*(read for _, read in reads), return_exceptions=True)

    async def _get(self, key: str) -> memoryview:
        return await self._store.get(key)

    def _may_help(self, key: str) -> bool:
        """Whether an object has something for the logs, as far as is known without reading it."""
        held = self._known.get(key)
        return held is None or any(
            (wanted := self._logs.get((topic_id, partition))) is not None
            and last_offset >= wanted.end_offset
            for topic_id, partition, last_offset in held
        )

    def _take(self, key: str, data: memoryview, *, is_last: bool) -> None:
        """Keep what an object holds for the logs; copies, so that the rest of it can go."""
        try:
            found = self._decode(key, data)
        except DamagedObjectError as error:
            tell = log.warning if is_last else log.error
            tell("damaged WAL object skipped", key=key, reason=error.reason, last=is_last)
            return
        self._known[key] = [
            (piece.topic_id, piece.partition, piece.last_offset) for piece in found.ranges
        ]
        for piece in found.ranges:
            wanted = self._logs.get((piece.topic_id, piece.partition))
            if wanted is not None and piece.last_offset >= wanted.recovery_offset:
                self._runs[wanted].append(Run.parsed(found.body(piece)))
                self.recovered_bytes += piece.length

    def _decode(self, key: str, data: memoryview) -> wal_object.WalObject:
        """An object that is whole, and the one that belongs under its key.

        A loss of power may leave the file of a younger object under an older name, where files are
        used again.
        """
        found = wal_object.decode(key, data)
        header = found.header
        if key != object_keys.wal_key(
            self._namespace, header.broker_id, header.epoch, header.sequence
        ):
            raise DamagedObjectError(key, f"it is object {header.sequence} of epoch {header.epoch}")
        return found


def _with_records(streams: Iterable[Stream]) -> Iterator[ObjectInfo]:
    return (
        item
        for stream in streams
        for item in stream.counting
        if item.size_bytes != wal_object.EMPTY_BYTES
    )
