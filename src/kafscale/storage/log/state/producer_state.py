"""Idempotent producers: which recent batches of which producers are in the log of one partition.

Producers number their records with sequences. A batch that repeats one of the last five of its
producer is a retry: the broker answers as before and does not store it again. Any other batch must
continue where the last one ended. The rules are those of Kafka's ProducerAppendInfo and
ProducerStateManager; `transaction_rules` has those of transactions.

A marker that changes a producer's epoch, or names a producer that is not known, is recorded as a
batch without sequences: the producer's next batch has sequence 0. Other markers change nothing
here.

Invariants:

1. The state is the result of `record` for all batches of the log in offset order, so it can be
   recovered from a snapshot and the batches after it.
2. A snapshot contains the state at an offset, even if the state has advanced since: batches are
   recorded when they are appended, before they are durable, but a segment ends at a durable batch.
   Therefore all batches of a producer above the high watermark are kept, with the five before
   them. A crash preserves at least everything below the high watermark; recovery from a snapshot
   and the batches after it gives the state as if only the preserved batches had been appended.
   (A snapshot may lack batches that five later durable ones have displaced. Those later ones follow
   in the log, and displace them in the replay as well.)
3. The number of producers is bounded. Beyond it the producer that was idle longest is dropped, and
   its next batch is accepted with any sequence. Those with an open transaction are kept.

Section `PROD` of an index, version 1 (see `index_section`), big-endian: the number of producers
(int32), then for each its id (int64), epoch (int16), number of batches (int16), and for each batch
the base and last sequence (int32), base and last offset, and timestamp (int64). The sequences of a
marker are -1.
"""

from collections.abc import Container
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple, Self

from kafscale.errors import DamagedObjectError, InvalidProducerEpochError, OutOfOrderSequenceError
from kafscale.records.batch import NO_SEQUENCE, BatchHeader
from kafscale.records.checksum import Buffer
from kafscale.storage.formats.index_section import decode_section, encode_section

WINDOW_BATCHES: Final = 5
"""Batches per producer that are remembered; Kafka's clients have at most this many in flight."""

PRODUCERS_COUNT_MAX: Final = 10_000
"""Producers remembered per partition; with five batches each, about 10 MB."""

_VERSION: Final = 1
_SEQUENCE_MASK: Final = 0x7FFF_FFFF
_COUNT: Final = Struct(">i")
_PRODUCER: Final = Struct(">qhh")
_BATCH: Final = Struct(">iiqqq")
_WINDOWS: Final = [Struct(">qhh" + "iiqqq" * count) for count in range(WINDOW_BATCHES + 1)]
"""A producer with all its batches, by their number."""

assert _PRODUCER.size == 12
assert _BATCH.size == 32

_Batch = tuple[int, int, int, int, int, int]
"""Epoch, base and last sequence, base and last offset, timestamp. A plain tuple, because one is
created for every appended batch."""


class Duplicate(NamedTuple):
    """The offsets of a repeated batch."""

    base_offset: int
    last_offset: int
    timestamp_ms: int


class ProducerState(NamedTuple):
    """A producer as DescribeProducers returns it."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int


class Producers:
    """The producers of one partition, the one idle longest first."""

    __slots__ = ("_count_max", "_kept", "_producers")

    def __init__(
        self, count_max: int = PRODUCERS_COUNT_MAX, kept: Container[int] = frozenset()
    ) -> None:
        """Producers in `kept`, which may change, are not dropped."""
        assert count_max > 0
        self._count_max = count_max
        self._kept = kept
        self._producers: dict[int, list[_Batch]] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def __contains__(self, producer_id: object) -> bool:
        return producer_id in self._producers

    def keep(self, kept: Container[int]) -> None:
        """Do not drop these producers, which may change; drop others that are too many."""
        self._kept = kept
        while len(self._producers) > self._count_max and self._drop_one():
            pass

    # --- the produce path -----------------------------------------------------------------------

    def check(
        self, producer_id: int, epoch: int, base_sequence: int, last_sequence: int
    ) -> Duplicate | None:
        """Return the stored batch if this one is a duplicate; None if it is to be appended.

        An unknown producer may start at any sequence, as in Kafka (`checkSequence`): its records
        may have been deleted, or its state has expired.
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

    def check_header(self, header: BatchHeader) -> Duplicate | None:
        return self.check(
            header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence
        )

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """Raise if the producer is known with a newer epoch."""
        current_epoch = self.epoch_of(producer_id)
        if current_epoch is not None and epoch < current_epoch:
            raise InvalidProducerEpochError(
                f"producer {producer_id} sent epoch {epoch}, but is at {current_epoch}"
            )

    def find_duplicate(self, header: BatchHeader) -> Duplicate | None:
        """The stored batch if this one is a duplicate, without any check."""
        batches = self._producers.get(header.producer_id)
        if batches is None or batches[-1][0] != header.producer_epoch:
            return None
        sent = (header.producer_epoch, header.base_sequence, header.last_sequence)
        for batch in batches[-WINDOW_BATCHES:]:
            if batch[:3] == sent:
                return Duplicate(*batch[3:])
        return None

    def epoch_of(self, producer_id: int) -> int | None:
        """The producer's newest epoch; None if it is not known."""
        batches = self._producers.get(producer_id)
        return None if batches is None else batches[-1][0]

    def last_sequence_of(self, producer_id: int) -> int:
        """The last sequence of the producer in its newest epoch; -1 if there is none."""
        batches = self._producers.get(producer_id)
        return NO_SEQUENCE if batches is None else batches[-1][2]

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
        """Record a batch that was appended, or is replayed.

        Records below the high watermark are durable; in a replay all are. Producers expire by
        `timestamp_ms`. Kafka uses the batch's timestamp, which expires producers of old records;
        callers here pass the append time instead.
        """
        batch = (epoch, base_sequence, last_sequence, base_offset, last_offset, timestamp_ms)
        self._add(producer_id, batch, high_watermark)

    def record_header(
        self, header: BatchHeader, base_offset: int, timestamp_ms: int, high_watermark: int
    ) -> None:
        """Record a batch that was appended at an offset, or is replayed."""
        batch = (
            header.producer_epoch,
            header.base_sequence,
            header.last_sequence,
            base_offset,
            base_offset + header.last_offset_delta,
            timestamp_ms,
        )
        self._add(header.producer_id, batch, high_watermark)

    def _add(self, producer_id: int, batch: _Batch, high_watermark: int) -> None:
        # Remove and insert again, so that the dictionary stays in order of the last append.
        batches = self._producers.pop(producer_id, None)
        if batches is None:
            batches = []
            if len(self._producers) >= self._count_max:
                self._drop_one()
        self._producers[producer_id] = batches
        batches.append(batch)
        # Invariant 2: drop a batch once five later ones are durable.
        while len(batches) > WINDOW_BATCHES and batches[WINDOW_BATCHES][4] < high_watermark:
            del batches[0]

    def record_marker(
        self, producer_id: int, epoch: int, offset: int, timestamp_ms: int, high_watermark: int
    ) -> None:
        """Record a marker of a transaction."""
        batches = self._producers.get(producer_id)
        if batches is None or batches[-1][0] != epoch:
            self.record(
                producer_id,
                epoch,
                NO_SEQUENCE,
                NO_SEQUENCE,
                offset,
                offset,
                timestamp_ms,
                high_watermark,
            )

    # --- expiry ---------------------------------------------------------------------------------

    def _drop_one(self) -> bool:
        """Drop a producer; false if all are kept."""
        for producer_id in self._producers:  # The one idle longest first.
            if producer_id not in self._kept:
                del self._producers[producer_id]
                return True
        return False

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Drop producers without an append for `expiration_ms`; return their number."""
        expired = []
        for producer_id, batches in self._producers.items():  # The one idle longest first.
            if now_ms - batches[-1][5] < expiration_ms:
                break
            if producer_id not in self._kept:
                expired.append(producer_id)
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    def describe(self) -> list[ProducerState]:
        return [
            ProducerState(producer_id, batches[-1][0], batches[-1][2], batches[-1][5])
            for producer_id, batches in self._producers.items()
        ]

    # --- snapshots ------------------------------------------------------------------------------

    def copy(self) -> "Producers":
        """A copy that a thread can encode while batches are recorded in the original.

        Both share the lists of batches: what is recorded after the copy is above the offsets that
        were appended before it (invariant 2).
        """
        copied = Producers(self._count_max)
        copied._producers = self._producers.copy()
        return copied

    def snapshot_at(self, end_offset: int) -> bytes:
        """Encode the state as of `end_offset` as a section of an index."""
        known = []
        for producer_id, batches in self._producers.items():
            window = batches[:]
            epoch, _, _, _, last_offset, _ = window[-1]
            if not (
                last_offset < end_offset and len(window) <= WINDOW_BATCHES and window[0][0] == epoch
            ):
                window = [batch for batch in window if batch[4] < end_offset][-WINDOW_BATCHES:]
                if not window:
                    continue
                # A new epoch starts a new window: earlier epochs cannot have duplicates.
                epoch, _, _, _, last_offset, _ = window[-1]
                window = [batch for batch in window if batch[0] == epoch]
            fields = [producer_id, epoch, len(window)]
            for batch in window:
                fields += batch[1:]
            known.append((last_offset, _WINDOWS[len(window)].pack(*fields)))
        known.sort()  # By last offset.
        parts = [_COUNT.pack(len(known)), *(encoded for _, encoded in known)]
        return encode_section(_VERSION, b"".join(parts))

    @classmethod
    def decode(cls, key: str, section: Buffer, count_max: int = PRODUCERS_COUNT_MAX) -> Self:
        """Decode a snapshot that was read from the object `key`; `keep` drops what is too much."""
        producers = cls(count_max)
        body = decode_section(key, _VERSION, section)
        try:
            position = _read(body, producers._producers)
        except struct_error as error:
            raise DamagedObjectError(key, "the producer section is truncated") from error
        if position != len(body):
            raise DamagedObjectError(
                key, f"{len(body) - position} extra bytes after the producer section"
            )
        if not all(producers._producers.values()):
            raise DamagedObjectError(key, "the producer section has a producer without batches")
        return producers


def _read(body: memoryview, producers: dict[int, list[_Batch]]) -> int:
    """Decode a section into `producers`; return the position after it."""
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
