"""Where each leader epoch of one partition began: what OffsetForLeaderEpoch is answered from.

A partition's leader epoch grows whenever it changes hands, and every batch bears the one it was
appended under. Clients that remember the epoch of what they read last can so find out whether the
log still holds it. The rules are those of Kafka's LeaderEpochFileCache.

The law: epochs and start offsets both ascend strictly. An epoch in which nothing was appended is
displaced by the next, which begins at the same offset.

Section `EPOC` of an index, version 1 (see `sealed_section`), big-endian: for each epoch its number
(int32) and its start offset (int64).
"""

from bisect import bisect_right
from struct import Struct
from typing import Final, NamedTuple, Self

from kafscale.errors import DamagedObjectError
from kafscale.records.checksum import Buffer
from kafscale.storage.formats.index_section import seal, unseal

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1

_VERSION: Final = 1
_ENTRY: Final = Struct(">iq")

assert _ENTRY.size == 12


class EpochEnd(NamedTuple):
    """The offset after the last of an epoch, and which epoch that is."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The leader epochs that a partition's log holds records of, and the current one."""

    __slots__ = ("_epochs", "_start_offsets")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._start_offsets: list[int] = []

    @property
    def latest(self) -> int:
        """The newest epoch that is known."""
        return self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    def entries(self) -> list[tuple[int, int]]:
        """Each epoch with its start offset, ascending."""
        return list(zip(self._epochs, self._start_offsets, strict=True))

    def note(self, epoch: int, start_offset: int) -> None:
        """Learn that `epoch` begins at `start_offset`; one that is not newer is no news.

        So a replay may note every batch, and a log of other hands, which had no epochs, opens.
        """
        if epoch <= self.latest:
            return
        while self._start_offsets and self._start_offsets[-1] >= start_offset:
            self._epochs.pop()
            self._start_offsets.pop()
        self._epochs.append(epoch)
        self._start_offsets.append(start_offset)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The largest epoch up to the one asked for, and where it ends in this log.

        An epoch older than all that are known ends where the oldest begins; one newer than all, or
        none, is answered with the two undefined values.
        """
        if epoch == UNDEFINED_EPOCH or epoch > self.latest:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        above = bisect_right(self._epochs, epoch)
        floor = self._epochs[above - 1] if above else epoch
        return EpochEnd(floor, self._start_offsets[above])

    def trim_before(self, log_start_offset: int) -> None:
        """Forget the epochs that ended before the log begins; the one it begins in begins there."""
        below = bisect_right(self._start_offsets, log_start_offset)
        if below:
            del self._epochs[: below - 1]
            del self._start_offsets[: below - 1]
            self._start_offsets[0] = log_start_offset

    def snapshot_at(self, end_offset: int) -> bytes:
        """What was known when the log ended at `end_offset`, as the section of an index."""
        return seal(
            _VERSION,
            b"".join(
                _ENTRY.pack(epoch, start_offset)
                for epoch, start_offset in self.entries()
                if start_offset < end_offset
            ),
        )

    @classmethod
    def decode(cls, key: str, section: Buffer) -> Self:
        """The epochs that a snapshot holds, which was found in the object under `key`."""
        body = unseal(key, _VERSION, section)
        if len(body) % _ENTRY.size:
            raise DamagedObjectError(key, "its leader epochs are cut short")
        epochs = cls()
        for epoch, start_offset in _ENTRY.iter_unpack(body):
            epochs.note(epoch, start_offset)
        if len(epochs._epochs) * _ENTRY.size != len(body):
            raise DamagedObjectError(key, "its leader epochs do not ascend")
        return epochs
