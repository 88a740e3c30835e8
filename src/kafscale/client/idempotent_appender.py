"""Appends batches to a partition exactly once, also across restarts of the writer.

A broker stores a batch of an idempotent producer once, even if it is sent twice. Usually a producer
gets a new id from a broker after each start, so this holds for one process only. Here, the id is
derived from what is written to which topic (`producer_id_of`), and the sequence continues from the
end of the log. So every run of a job is the same producer, and the broker's sequence check becomes
a compare-and-set on the end of what the job has written:

* A batch that an earlier run sent, without receiving the response, is stored once.
* Of two concurrent runs, neither repeats records of the other; one of them fails.

Invariant: the nth record of such a producer is always the same record.
"""

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from struct import Struct
from typing import Final

from kafscale.aio.backoff import Backoff
from kafscale.client.errors import (
    RETRIES_COUNT_MAX,
    RETRY_SECONDS_MAX,
    BrokerResponseError,
    Pause,
    is_retriable,
)
from kafscale.client.partition import Outcome, Partition
from kafscale.errors import KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.records import BatchView
from kafscale.records.batch import BASE_SEQUENCE_POSITION, PRODUCER_ID_POSITION

BATCHES_IN_FLIGHT_MAX: Final = 5
"""How many batches of a producer brokers remember, to detect duplicates."""

BYTES_IN_FLIGHT_MAX: Final = 8 * 1024 * 1024
EPOCH: Final = 0
UNKNOWN_OFFSET: Final = -1
"""The offset of a duplicate batch: the broker does not return where it is stored."""

_SEQUENCE_MASK: Final = 0x7FFF_FFFF
_DERIVED_BIT: Final = 1 << 62
"""Set in derived ids; the ids that brokers assign count up from 0 and never reach it."""

_PRODUCER: Final = Struct(">qhi")

assert PRODUCER_ID_POSITION + _PRODUCER.size == BASE_SEQUENCE_POSITION + 4


def producer_id_of(*identity: object) -> int:
    """Derive a producer id; identify topics by topic id, not by name."""
    digest = blake2b(repr(identity).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") & (_DERIVED_BIT - 1) | _DERIVED_BIT


def next_sequence(batch: BatchView) -> int:
    """The base sequence of the next batch."""
    return (batch.last_sequence + 1) & _SEQUENCE_MASK


class IdempotentAppender:
    """An idempotent producer of batches for one partition."""

    def __init__(
        self, partition: Partition, producer_id: int, sequence: int, *, pause: Pause = asyncio.sleep
    ) -> None:
        self._partition = partition
        self._producer_id = producer_id
        self._sequence = sequence & _SEQUENCE_MASK
        self._pause = pause
        self._waiting: list[bytearray] = []
        self._waiting_bytes = 0
        self._is_registered = False
        """Whether the broker has stored a batch of this producer."""

    async def add(self, batch: bytearray) -> list[int]:
        """Add a batch, and set its producer fields; return the base offsets of batches sent now.

        The offset deltas of its records must be 0, 1, 2 …, as brokers require.
        """
        view = BatchView(batch)
        _PRODUCER.pack_into(batch, PRODUCER_ID_POSITION, self._producer_id, EPOCH, self._sequence)
        view.write_checksum()
        self._sequence = (self._sequence + view.count) & _SEQUENCE_MASK
        self._waiting.append(batch)
        self._waiting_bytes += len(batch)
        is_full = (
            len(self._waiting) == BATCHES_IN_FLIGHT_MAX
            or self._waiting_bytes >= BYTES_IN_FLIGHT_MAX
        )
        return await self.flush() if is_full else []

    async def flush(self) -> list[int]:
        """Send all batches, wait until they are durable, and return their base offsets."""
        offsets = []
        backoff = Backoff(max_seconds=RETRY_SECONDS_MAX)
        while self._waiting:
            # A broker accepts any sequence from an unknown producer, so the first batch is sent
            # alone: otherwise a later batch could be stored before it.
            sent = self._waiting if self._is_registered else self._waiting[:1]
            outcomes = await self._partition.produce(sent)
            stored, problem = _stored_prefix(outcomes)
            offsets += stored
            if stored:
                self._is_registered = True
                backoff.reset()
                del self._waiting[: len(stored)]
            if problem is not None:
                if backoff.tries == RETRIES_COUNT_MAX or not is_retriable(problem):
                    raise _with_hint(problem)
                await self._pause(backoff.next_seconds())
                await self._refresh_metadata()
        self._waiting_bytes = 0
        return offsets

    async def _refresh_metadata(self) -> None:
        try:
            await self._partition.refresh_metadata()
        except KafscaleError as error:
            if not is_retriable(error):
                raise


def _stored_prefix(outcomes: Sequence[Outcome]) -> tuple[list[int], KafscaleError | None]:
    """The offsets of the batches before the first that failed, and its error."""
    offsets: list[int] = []
    for outcome in outcomes:
        if isinstance(outcome, KafscaleError):
            is_stored = (
                isinstance(outcome, BrokerResponseError)
                and outcome.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
            )
            if not is_stored:
                return offsets, outcome
            outcome = UNKNOWN_OFFSET  # noqa: PLW2901
        offsets.append(outcome)
    return offsets, None


def _with_hint(error: KafscaleError) -> KafscaleError:
    """The error with a hint about its cause."""
    hints = {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "another run of this job writes to this partition",
        ErrorCode.MESSAGE_TOO_LARGE: "raise max.message.bytes of the topic",
    }
    if isinstance(error, BrokerResponseError) and error.error_code in hints:
        return error.with_hint(hints[error.error_code])
    return error
