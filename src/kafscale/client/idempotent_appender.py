"""Appends whole batches to a partition, each exactly once, whoever was killed in between.

A producer that numbers its batches may send one twice, and the broker stores it once. Usually a
producer gets an id from a broker, and a new one after each start, so that this holds for one life
only. Here the id is given, derived from what is written where (`producer_id_of`), and the sequence
goes on from what the log holds. So every run of a job is the same producer, and the broker's check
of sequences becomes a compare-and-set on the end of what the job has written:

* A batch that an earlier run sent, and nobody saw arrive, is stored once.
* Of two runs at the same time, neither writes what the other has written. One of them is told.

The law behind it: the nth record of such a producer is always the same record.
"""

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from struct import Struct
from typing import Final

from kafscale.client.errors import AnsweredError, may_pass
from kafscale.client.partition import Outcome, Partition
from kafscale.client.retry import RETRIES_COUNT_MAX, Pause, pause_seconds
from kafscale.errors import KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.records import BatchView
from kafscale.records.batch import BASE_SEQUENCE_POSITION, PRODUCER_ID_POSITION

BATCHES_IN_FLIGHT_MAX: Final = 5
"""How many batches of a producer brokers know again."""

BYTES_IN_FLIGHT_MAX: Final = 8 * 1024 * 1024
EPOCH: Final = 0
UNTOLD: Final = -1
"""The offset of a batch that is stored, the broker does not say where."""

_SEQUENCE_MASK: Final = 0x7FFF_FFFF
_DERIVED_BIT: Final = 1 << 62
"""Set in ids that are derived; those that brokers give out count up from 0 and never get here."""

_PRODUCER: Final = Struct(">qhi")

assert PRODUCER_ID_POSITION + _PRODUCER.size == BASE_SEQUENCE_POSITION + 4


def producer_id_of(*identity: object) -> int:
    """The id of whoever writes what `identity` says; topics are best said by their ids."""
    digest = blake2b(repr(identity).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") & (_DERIVED_BIT - 1) | _DERIVED_BIT


def next_sequence(batch: BatchView) -> int:
    """The sequence of the batch that follows one."""
    return (batch.last_sequence + 1) & _SEQUENCE_MASK


class Appender:
    """A producer of one partition; one batch after the other is handed to it."""

    def __init__(
        self, partition: Partition, producer_id: int, sequence: int, *, pause: Pause = asyncio.sleep
    ) -> None:
        self._partition = partition
        self._producer_id = producer_id
        self._sequence = sequence & _SEQUENCE_MASK
        self._pause = pause
        self._waiting: list[bytearray] = []
        self._waiting_bytes = 0
        self._is_known = False

    async def add(self, batch: bytearray) -> list[int]:
        """Take a batch, which is changed; where earlier ones begin in the log, if some were sent.

        Its records have the offsets 0, 1, 2 … relative to its base, as brokers demand.
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
        """Return when all batches are durable, with where they begin in the log."""
        offsets = []
        failures = 0
        while self._waiting:
            # A broker takes any sequence from a producer that it does not know: the first batch
            # has to arrive before a second can be told from one that came too early.
            sent = self._waiting if self._is_known else self._waiting[:1]
            outcomes = await self._partition.produce(sent)
            arrived, problem = _arrived(outcomes)
            offsets += arrived
            if arrived:
                self._is_known = True
                failures = 0
                del self._waiting[: len(arrived)]
            if problem is not None:
                failures += 1
                if failures > RETRIES_COUNT_MAX or not may_pass(problem):
                    raise _explained(problem)
                await self._pause(pause_seconds(failures))
                await self._look_again()
        self._waiting_bytes = 0
        return offsets

    async def _look_again(self) -> None:
        try:
            await self._partition.look_again()
        except KafscaleError as error:
            if not may_pass(error):
                raise


def _arrived(outcomes: Sequence[Outcome]) -> tuple[list[int], KafscaleError | None]:
    """The batches that arrived before the first that did not, and why it did not."""
    offsets: list[int] = []
    for outcome in outcomes:
        if isinstance(outcome, KafscaleError):
            is_stored = (
                isinstance(outcome, AnsweredError)
                and outcome.answer == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
            )
            if not is_stored:
                return offsets, outcome
            outcome = UNTOLD  # noqa: PLW2901
        offsets.append(outcome)
    return offsets, None


def _explained(error: KafscaleError) -> KafscaleError:
    """The error, with what it means here."""
    hints = {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "another run of this job writes there, too",
        ErrorCode.MESSAGE_TOO_LARGE: "raise max.message.bytes of the topic",
    }
    if isinstance(error, AnsweredError) and error.answer in hints:
        return error.hinted(hints[error.answer])
    return error
