"""Idempotence in one partition: which batches of which producers are in the log already.

A producer numbers its records. A batch that repeats one of the last five of its producer is a
retry, and is answered as the first time without being stored again; any other batch must go on
where the last one ended. The rules are those of Kafka's ProducerAppendInfo and
ProducerStateManager, word for word; those of transactions are not among them yet.

The laws:

1. The state is what `record` made of the batches of the log, in the order of their offsets. So it
   can be had again from a snapshot and the batches behind it.
2. A snapshot says what was known at an offset, although the state has moved on since: batches are
   recorded when they are appended, before they are durable, while a segment ends at durable ones.
   Hence a producer's batches above the high watermark are kept however many they are, with the
   five before them. Whatever a crash leaves of the log, which is at least all below the high
   watermark, a snapshot and the batches behind it answer as if only those had ever been appended.
   (A snapshot may lack batches that five later and durable ones have displaced: those are behind
   it in the log, and displace them in the replay as well.)
3. The number of producers is bounded. Beyond it the one that has been silent for longest is
   forgotten, and is then as good as new: its next batch is taken, whatever its sequence.

Section `PROD` of an index, version 1 (see `sealed_section`), big-endian: the number of producers
(int32), then for each its id (int64), epoch (int16), number of batches (int16), and for each batch
the base and last sequence (int32), base and last offset, and timestamp (int64).
"""

from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple, Self

from kafscale.errors import DamagedObjectError, InvalidProducerEpochError, OutOfOrderSequenceError
from kafscale.records.checksum import Buffer
from kafscale.storage.formats.index_section import seal, unseal

WINDOW_BATCHES: Final = 5
"""How many batches a producer may have in flight: Kafka's clients allow no more."""

PRODUCERS_COUNT_MAX: Final = 10_000
"""How many producers one partition remembers. With five batches each about 10 MB."""

_VERSION: Final = 1
_SEQUENCE_MASK: Final = 0x7FFF_FFFF
_COUNT: Final = Struct(">i")
_PRODUCER: Final = Struct(">qhh")
_BATCH: Final = Struct(">iiqqq")

assert _PRODUCER.size == 12
assert _BATCH.size == 32

_Batch = tuple[int, int, int, int, int, int]
"""Epoch, base and last sequence, base and last offset, timestamp. A plain tuple, because one is
made for every batch that is appended."""


class Duplicate(NamedTuple):
    """Where a batch that came again was stored the first time."""

    base_offset: int
    last_offset: int
    timestamp_ms: int


class ProducerState(NamedTuple):
    """What DescribeProducers says about a producer."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int


class Producers:
    """The producers of one partition, the longest silent first."""

    __slots__ = ("_count_max", "_producers")

    def __init__(self, count_max: int = PRODUCERS_COUNT_MAX) -> None:
        assert count_max > 0
        self._count_max = count_max
        self._producers: dict[int, list[_Batch]] = {}

    def __len__(self) -> int:
        return len(self._producers)

    # --- the produce path -----------------------------------------------------------------------

    def check(
        self, producer_id: int, epoch: int, base_sequence: int, last_sequence: int
    ) -> Duplicate | None:
        """Where the batch is already, or None for one to append, which goes on as it must.

        A producer that is not known may begin at any sequence, as in Kafka (`checkSequence`):
        its records may have been deleted since, or it was forgotten.
        """
        batches = self._producers.get(producer_id)
        if batches is None:
            return None
        current_epoch, _, current_sequence, _, _, _ = batches[-1]
        if epoch == current_epoch:
            if base_sequence == (current_sequence + 1) & _SEQUENCE_MASK:
                return None
            for batch in batches[-WINDOW_BATCHES:]:
                if batch[:3] == (epoch, base_sequence, last_sequence):
                    return Duplicate(*batch[3:])
            raise OutOfOrderSequenceError(
                f"producer {producer_id} sent sequence {base_sequence} after {current_sequence}"
            )
        if epoch < current_epoch:
            raise InvalidProducerEpochError(
                f"producer {producer_id} sent epoch {epoch}, but is at {current_epoch}"
            )
        if base_sequence != 0:
            raise OutOfOrderSequenceError(
                f"producer {producer_id} begins epoch {epoch} with sequence {base_sequence}"
            )
        return None

    def record(  # noqa: PLR0917 - keywords cost time on the produce path
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        last_sequence: int,
        base_offset: int,
        last_offset: int,
        timestamp_ms: int,
        high_watermark: int,
    ) -> None:
        """Take in a batch that is in the log now; in a replay, one that is there again.

        Below the high watermark the log is durable; in a replay, all of it is. `timestamp_ms` is
        the time by which producers expire: Kafka's is the batch's, which a producer of old records
        is forgotten by; the time of the append is kinder.
        """
        # Taken out and put back, so that the dictionary is in the order of the last appends.
        batches = self._producers.pop(producer_id, None)
        if batches is None:
            batches = []
            if len(self._producers) >= self._count_max:
                del self._producers[next(iter(self._producers))]
        self._producers[producer_id] = batches
        batches.append(
            (epoch, base_sequence, last_sequence, base_offset, last_offset, timestamp_ms)
        )
        # The second law: a batch goes when five later ones can no longer be lost.
        while len(batches) > WINDOW_BATCHES and batches[WINDOW_BATCHES][4] < high_watermark:
            del batches[0]

    # --- housekeeping ---------------------------------------------------------------------------

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget the producers that have appended nothing for so long, and say how many."""
        expired = [
            producer_id
            for producer_id, batches in self._producers.items()
            if now_ms - batches[-1][5] >= expiration_ms
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    def describe(self) -> list[ProducerState]:
        return [
            ProducerState(producer_id, batches[-1][0], batches[-1][2], batches[-1][5])
            for producer_id, batches in self._producers.items()
        ]

    # --- snapshots ------------------------------------------------------------------------------

    def snapshot_at(self, end_offset: int) -> bytes:
        """What was known when the log ended at `end_offset`, as the section of an index."""
        known = []
        for producer_id, batches in self._producers.items():
            window = [batch for batch in batches if batch[4] < end_offset][-WINDOW_BATCHES:]
            if window:
                # A new epoch begins a new window: nothing of an earlier one is a duplicate.
                epoch = window[-1][0]
                known.append((producer_id, epoch, [b for b in window if b[0] == epoch]))
        known.sort(key=_last_offset)
        parts = [_COUNT.pack(len(known))]
        for producer_id, epoch, window in known:
            parts.append(_PRODUCER.pack(producer_id, epoch, len(window)))
            parts += [_BATCH.pack(*batch[1:]) for batch in window]
        return seal(_VERSION, b"".join(parts))

    @classmethod
    def decode(cls, key: str, section: Buffer, count_max: int = PRODUCERS_COUNT_MAX) -> Self:
        """The state that a snapshot holds, which was found in the object under `key`."""
        producers = cls(count_max)
        body = unseal(key, _VERSION, section)
        try:
            position = _read(body, producers._producers)
        except struct_error as error:
            raise DamagedObjectError(key, "its producers are cut short") from error
        if position != len(body):
            raise DamagedObjectError(key, f"{len(body) - position} bytes follow its producers")
        if not all(producers._producers.values()):
            raise DamagedObjectError(key, "it has a producer without batches")
        while len(producers) > count_max:
            del producers._producers[next(iter(producers._producers))]
        return producers


def _last_offset(known: tuple[int, int, list[_Batch]]) -> int:
    return known[2][-1][4]


def _read(body: memoryview, producers: dict[int, list[_Batch]]) -> int:
    """Fill in what a section says, and return where it ends."""
    (producers_count,) = _COUNT.unpack_from(body)
    position = _COUNT.size
    for _ in range(producers_count):
        producer_id, epoch, batches_count = _PRODUCER.unpack_from(body, position)
        position += _PRODUCER.size
        batches = []
        for _ in range(batches_count):
            batches.append((epoch, *_BATCH.unpack_from(body, position)))
            position += _BATCH.size
        producers[producer_id] = batches
    return position
