"""`ShardLog`: one shard of groups as a partition of `__consumer_offsets`, for clients that read it.

The metadata store holds groups and offsets, and no log of them exists. A shard log is made from the
store when a client first reads the partition, and follows what the coordinator writes from then on:
what a compacted log would hold, the newest record of each key, and tombstones of deleted keys while
they are known.

Offsets are those of the store's revisions: the records of revision r have the last of the offsets
from 128 r to 128 r + 127, in the order of their keys. So they ascend, also across restarts and
changes of the coordinator, because revisions do and a shard has one writer.

Invariants:

1. The newest record of every key is at an offset that a reader has not passed, unless the reader
   has had it. A log that is made again may have records of one revision at other offsets than
   before, because those that were overwritten are gone: only at higher ones, so that a reader that
   stopped between them reads some again, and misses none.
2. The end never moves back. A log that is made has a control record at the revision at which the
   store was read, unless a key has that revision: whatever ended the log before, such as a
   tombstone, has a lower offset. Consumers skip control records, and so reach the end.
3. A read encodes at most `RECORDS_MAX` records.
"""

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeGuard

from kafscale.errors import DamagedObjectError, NotOwnerError, OffsetOutOfRangeError
from kafscale.groups import offsets_topic
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import decode_group, decode_offset
from kafscale.metadata.schema.model import SHARDS_TOPIC
from kafscale.metadata.store.base import OPERATIONS_MAX, Delete, Entry, Operation, Put
from kafscale.observability.logging import get_logger
from kafscale.records import Record, build
from kafscale.storage.log.state.leader_epochs import LeaderEpochs

logger = get_logger(__name__)

OFFSETS_PER_REVISION: Final = OPERATIONS_MAX

TOMBSTONES_MAX: Final = 10_000
"""How many deleted keys of a shard are remembered."""

RECORDS_MAX: Final = 200
"""How many records one read encodes: a few milliseconds."""

DELTA_MAX: Final = 2**31 - 1
"""The largest distance of offsets in one batch."""

_RECORD_OVERHEAD_BYTES: Final = 32
_BATCH_OVERHEAD_BYTES: Final = 100
_SUPERSEDED_MIN: Final = 1000

_COMMIT_MARKER_KEY: Final = b"\0\0\0\1"
_COMMIT_MARKER_VALUE: Final = b"\0\0\0\0\0\0"

Change = Put | Delete
Watcher = Callable[["ShardLog"], None]


class ShardLog:
    """The partition of one shard session, with the interface that Fetch needs of a log."""

    topic = SHARDS_TOPIC
    start_offset = 0

    def __init__(
        self,
        shard: int,
        leader_epoch: int,
        clock: Callable[[], int],
        *,
        tombstones_max: int = TOMBSTONES_MAX,
    ) -> None:
        self.partition = shard
        self.leader_epoch = leader_epoch
        self.epochs = LeaderEpochs()
        self.epochs.assign(leader_epoch, 0)
        self.high_watermark = 0
        """The offset after the last record."""
        self.closed = False
        self.is_loaded = False
        self._clock = clock
        self._tombstones_max = tombstones_max
        self._operations: dict[int, tuple[Change, int] | None] = {}
        """The change of a key at an offset, and when it was seen; None for the control record."""
        self._offsets: array[int] = array("q")
        """Ascending; also those of records that were overwritten, until there are many of them."""
        self._newest: dict[str, int] = {}
        """The offset of the newest record of each key."""
        self._tombstones: deque[str] = deque()
        self._unapplied: list[tuple[int, Sequence[Operation]]] = []
        """What was written while the log is being loaded."""
        self._watchers: set[Watcher] = set()

    # --- writing ----------------------------------------------------------------------------------

    def load(self, entries: Iterable[Entry], revision: int) -> None:
        """Begin with the entries of the shard, as the store had them at `revision`."""
        by_revision: dict[int, list[Operation]] = {}
        for entry in entries:
            by_revision.setdefault(entry.mod_revision, []).append(Put(entry.key, entry.value))
        for written in sorted(by_revision):
            self._apply(written, by_revision[written])
        marker_offset = (revision + 1) * OFFSETS_PER_REVISION - 1
        if marker_offset >= self.high_watermark:
            self._set(marker_offset, None)
        self.is_loaded = True
        for written, operations in self._unapplied:
            if written > revision:
                self._apply(written, operations)
        self._unapplied.clear()
        self._notify()

    def append(self, revision: int, operations: Sequence[Operation]) -> None:
        """Add what the coordinator wrote to the store at `revision`."""
        if not self.is_loaded:
            self._unapplied.append((revision, operations))
            return
        self._apply(revision, operations)
        self._notify()

    def close(self) -> None:
        """The shard is not served any more."""
        self.closed = True
        self._notify()

    def _apply(self, revision: int, operations: Sequence[Operation]) -> None:
        named = [operation for operation in operations if _is_record(operation)]
        offset = (revision + 1) * OFFSETS_PER_REVISION - len(named)
        now_ms = self._clock()
        for operation in sorted(named, key=lambda each: each.key):
            self._set(offset, (operation, now_ms))
            self._supersede(operation.key, offset)
            if isinstance(operation, Delete):
                self._tombstones.append(operation.key)
            offset += 1
        while len(self._tombstones) > self._tombstones_max:
            self._forget(self._tombstones.popleft())
        if len(self._offsets) > 2 * len(self._operations) + _SUPERSEDED_MIN:
            self._offsets = array("q", self._operations)

    def _set(self, offset: int, operation: tuple[Change, int] | None) -> None:
        assert offset >= self.high_watermark, (offset, self.high_watermark)
        self._operations[offset] = operation
        self._offsets.append(offset)
        self.high_watermark = offset + 1

    def _supersede(self, key: str, offset: int) -> None:
        before = self._newest.get(key)
        if before is not None:
            del self._operations[before]
        self._newest[key] = offset

    def _forget(self, key: str) -> None:
        """Drop a tombstone, unless the key was written again."""
        offset = self._newest.get(key)
        found = self._operations.get(offset) if offset is not None else None
        if offset is not None and found is not None and isinstance(found[0], Delete):
            del self._operations[offset]
            del self._newest[key]

    # --- reading ----------------------------------------------------------------------------------

    @property
    def tail(self) -> "ShardLog":
        """All records are in memory."""
        return self

    def check_readable(self, offset: int) -> None:
        if self.closed or not self.is_loaded:
            raise NotOwnerError(f"{self.topic}/{self.partition} is not served by this broker yet")
        if not 0 <= offset <= self.high_watermark:
            raise OffsetOutOfRangeError(
                f"offset {offset} of {self.topic}/{self.partition} is out of range"
                f" 0 to {self.high_watermark}"
            )

    def in_tail(self, _offset: int) -> bool:
        return True

    def read(self, offset: int, bytes_max: int, *, first: bool) -> tuple[list[memoryview], int]:
        """Batches from this offset, and the offset after them; the first record if `first`."""
        records: list[Record] = []
        size_bytes = _BATCH_OVERHEAD_BYTES
        for position, operation in self._from(offset):
            if operation is None:
                # Control records have a batch of their own.
                marker = [] if records else [_batch([_commit_marker(position)], control=True)]
                return marker or [_batch(records)], position + (not records)
            record = _record(position, *operation)
            if record is None:
                continue
            size_bytes += _size_bytes(record)
            if (records or not first) and size_bytes > bytes_max:
                break
            if records and position - records[0].offset > DELTA_MAX:
                break
            records.append(record)
            if len(records) == RECORDS_MAX:
                break
        return ([_batch(records)], records[-1].offset + 1) if records else ([], offset)

    def bytes_from(self, offset: int, enough: int) -> int:
        """Bytes readable from the offset; stops counting at `enough`."""
        total = 0
        for _, operation in self._from(offset):
            total += _BATCH_OVERHEAD_BYTES if operation is None else len(operation[0].key)
            if total >= enough:
                break
        return total

    def timestamps(self) -> Iterator[tuple[int, int]]:
        """The offset and timestamp of each record, ascending by offset."""
        for offset, operation in list(self._operations.items()):
            record = operation and _record(offset, *operation)
            if record:
                yield offset, record.timestamp_ms

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` with this log whenever there are new records, or the log is closed."""
        self._watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.discard(watcher)

    @property
    def is_watched(self) -> bool:
        return bool(self._watchers)

    def _from(self, offset: int) -> Iterator[tuple[int, tuple[Change, int] | None]]:
        for number in range(bisect_left(self._offsets, offset), len(self._offsets)):
            position = self._offsets[number]
            if position in self._operations:
                yield position, self._operations[position]

    def _notify(self) -> None:
        for watcher in tuple(self._watchers):
            watcher(self)


def _is_record(operation: Operation) -> TypeGuard[Change]:
    """Whether it changes a group or a committed offset: what is pending in transactions is not."""
    return isinstance(operation, Change) and isinstance(
        keys.parse(operation.key), keys.ConsumerGroupKey | keys.CommittedOffsetKey
    )


def _record(offset: int, operation: Change, seen_ms: int) -> Record | None:
    """The record of an operation; None if its value is damaged."""
    key = keys.parse(operation.key)
    if isinstance(key, keys.CommittedOffsetKey):
        name = offsets_topic.offset_key(key.group, key.topic, key.partition)
    elif isinstance(key, keys.ConsumerGroupKey):
        name = offsets_topic.group_key(key.group)
    else:
        return None
    if isinstance(operation, Delete):
        return Record(offset, seen_ms, name, None)
    entry = Entry(operation.key, operation.value, 0, 0)
    try:
        if isinstance(key, keys.CommittedOffsetKey):
            committed = decode_offset(entry)
            value = offsets_topic.offset_value(committed)
            return Record(offset, committed.committed_ms, name, value)
        group = decode_group(entry)
        return Record(offset, group.state_since_ms, name, offsets_topic.group_value(group))
    except DamagedObjectError as error:
        logger.error("group record damaged", key=error.key, reason=error.reason)
        return None


def _commit_marker(offset: int) -> Record:
    """The control record of a committed transaction, which every consumer skips."""
    return Record(offset, 0, _COMMIT_MARKER_KEY, _COMMIT_MARKER_VALUE)


def _batch(records: Sequence[Record], *, control: bool = False) -> memoryview:
    return memoryview(build(records, control=control))


def _size_bytes(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"") + _RECORD_OVERHEAD_BYTES
