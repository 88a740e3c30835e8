"""The start offset of each leader epoch of a partition, for OffsetForLeaderEpoch.

The leader epoch grows with every change of leader, and every batch carries the epoch it was
appended under. Clients compare it with the epoch of the last record they read, to detect
truncation. The rules are those of Kafka's LeaderEpochFileCache.

Invariant: epochs and start offsets both ascend strictly. An epoch without records is replaced by
the next one, which begins at the same offset.

Section `EPOC` of an index, version 1 (see `index_section`), big-endian: for each epoch its number
(int32) and its start offset (int64).
"""

from bisect import bisect_right
from struct import Struct
from typing import Final, NamedTuple, Self

from kafscale.errors import DamagedObjectError
from kafscale.records.checksum import Buffer
from kafscale.storage.formats.index_section import decode_section, encode_section

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1

_VERSION: Final = 1
_ENTRY: Final = Struct(">iq")

assert _ENTRY.size == 12


class EpochEnd(NamedTuple):
    """An epoch, and the offset after its last record."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The leader epochs of a log's records, and the current one."""

    __slots__ = ("_epochs", "_start_offsets")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._start_offsets: list[int] = []

    @property
    def latest(self) -> int:
        """The newest epoch, or -1."""
        return self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    def entries(self) -> list[tuple[int, int]]:
        """Each epoch with its start offset, ascending."""
        return list(zip(self._epochs, self._start_offsets, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` begins at `start_offset`; epochs that are not newer are ignored.

        So recovery can pass every batch, and a log written by upstream KafScale, whose batches
        carry no epochs, can be opened.
        """
        if epoch <= self.latest:
            return
        while self._start_offsets and self._start_offsets[-1] >= start_offset:
            self._epochs.pop()
            self._start_offsets.pop()
        self._epochs.append(epoch)
        self._start_offsets.append(start_offset)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The largest known epoch up to the requested one, and its end offset.

        An epoch older than all known ones ends where the oldest begins. For an epoch newer than
        all, or -1, both values are undefined (-1).
        """
        if epoch == UNDEFINED_EPOCH or epoch > self.latest:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        above = bisect_right(self._epochs, epoch)
        floor = self._epochs[above - 1] if above else epoch
        return EpochEnd(floor, self._start_offsets[above])

    def truncate_from_start(self, log_start_offset: int) -> None:
        """Drop epochs that end before the log start offset; the remaining first starts there."""
        below = bisect_right(self._start_offsets, log_start_offset)
        if below:
            del self._epochs[: below - 1]
            del self._start_offsets[: below - 1]
            self._start_offsets[0] = log_start_offset

    def copy(self) -> "LeaderEpochs":
        """A copy that a thread can encode while the original changes."""
        copied = LeaderEpochs()
        copied._epochs = self._epochs.copy()
        copied._start_offsets = self._start_offsets.copy()
        return copied

    def snapshot_at(self, end_offset: int) -> bytes:
        """Encode the epochs as of `end_offset` as a section of an index."""
        return encode_section(
            _VERSION,
            b"".join(
                _ENTRY.pack(epoch, start_offset)
                for epoch, start_offset in self.entries()
                if start_offset < end_offset
            ),
        )

    @classmethod
    def decode(cls, key: str, section: Buffer) -> Self:
        """Decode a snapshot that was read from the object `key`."""
        body = decode_section(key, _VERSION, section)
        if len(body) % _ENTRY.size:
            raise DamagedObjectError(key, "the leader epoch section is truncated")
        epochs = cls()
        for epoch, start_offset in _ENTRY.iter_unpack(body):
            epochs.assign(epoch, start_offset)
        if len(epochs._epochs) * _ENTRY.size != len(body):
            raise DamagedObjectError(key, "the leader epochs do not ascend")
        return epochs
