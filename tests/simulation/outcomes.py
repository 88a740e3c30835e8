"""A model of transactions: which values readers of committed records must get, and must not get."""

import enum
from collections.abc import Iterable, Mapping

from kafscale.records import BatchView, Record, iterate
from kafscale.records.control import ControlType, read_end_marker
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.transactions import AbortedTransaction


class InvariantViolationError(AssertionError):
    """The engine has violated an invariant."""


class Outcome(enum.Enum):
    """What is decided about a transaction."""

    OPEN = enum.auto()
    COMMITTED = enum.auto()
    ABORTED = enum.auto()


class TransactionsModel:
    """The transactions of one partition."""

    def __init__(self) -> None:
        self._outcomes: dict[bytes, Outcome] = {}
        """By value; those without an outcome are in no transaction."""
        self._stable_offset = 0
        """The last stable offset that was seen last."""

    def decide(self, values: Iterable[bytes], outcome: Outcome) -> None:
        """Record what becomes of some values, before the log has its marker."""
        self._outcomes.update(dict.fromkeys(values, outcome))

    def check_stable(self, log: PartitionLog) -> None:
        """The last stable offset is within the log, and never moves back."""
        stable_offset = log.last_stable_offset
        if not log.start_offset <= stable_offset <= log.high_watermark:
            raise InvariantViolationError(f"{log!r}: last stable offset {stable_offset}")
        if stable_offset < self._stable_offset:
            raise InvariantViolationError(
                f"{log!r}: last stable offset {stable_offset}, after {self._stable_offset}"
            )
        if stable_offset > log.start_offset:
            # A log start that retention has raised, but not saved, may be lost in a crash.
            self._stable_offset = stable_offset

    def check_read(
        self, log: PartitionLog, batches: Iterable[BatchView], aborted: list[AbortedTransaction]
    ) -> None:
        """A reader of committed records leaves out those of aborted transactions, and no others."""
        kept = committed_batches(batches, aborted)
        for batch, is_kept in kept.items():
            for record in iterate(batch):
                self._check(log, record, is_kept=is_kept)

    def _check(self, log: PartitionLog, record: Record, *, is_kept: bool) -> None:
        outcome = self._outcomes.get(record.value or b"")
        if is_kept and outcome in {Outcome.OPEN, Outcome.ABORTED}:
            raise InvariantViolationError(f"{log!r}: {record} is read, but {outcome}")
        if not is_kept and outcome is not Outcome.ABORTED:
            raise InvariantViolationError(f"{log!r}: {record} is left out, but {outcome}")


def committed_batches(
    batches: Iterable[BatchView], aborted: list[AbortedTransaction]
) -> Mapping[BatchView, bool]:
    """The batches without markers, and whether a consumer as Kafka's keeps them."""
    pending = sorted(aborted, key=lambda each: each.first_offset)
    left_out: set[int] = set()
    kept = {}
    for batch in batches:
        while pending and pending[0].first_offset <= batch.last_offset:
            left_out.add(pending.pop(0).producer_id)
        marker = read_end_marker(batch)
        if marker is None:
            kept[batch] = not (batch.is_transactional and batch.producer_id in left_out)
        elif marker.control_type is ControlType.ABORT:
            left_out.discard(batch.producer_id)
    return kept
