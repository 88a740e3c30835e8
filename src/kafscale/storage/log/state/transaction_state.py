"""The transactions of one partition: which are open, which were aborted, what readers may see.

The last stable offset is the first offset of the oldest transaction that is open or whose marker is
not durable yet. Readers of committed records read up to it: below, every transaction has ended, and
`aborted` says which records they leave out.

Invariants:

1. The state is the result of `begin` and `end` for all batches of the log in offset order,
   so it can be recovered from a section and the batches after it.
2. `section_at` gives the state at an offset, even if it has advanced since, as snapshots of
   producers do. Therefore transactions that have ended, also committed ones, are kept at least
   until the segment with their marker is written, and of each producer all markers above the high
   watermark with the one before them. (A section may lack a marker that later durable ones have
   displaced. Those follow in the log.)
3. First offsets of open transactions ascend in the order of `begin`, so the last stable offset
   never moves back.

`transaction_rules` decides which batches are accepted. `storage.read.aborted_transactions` searches
what is in segments.
"""

from array import array
from collections import OrderedDict
from collections.abc import Container, Iterator
from typing import Final, NamedTuple

import msgspec

from kafscale.storage.log.state.transactions import (
    AbortedTransaction,
    MarkedProducer,
    OpenTransaction,
    TransactionSection,
    TransactionSpans,
)

MARKED_COUNT_MAX: Final = 10_000
"""Producers per partition whose newest marker is remembered."""
VERIFICATIONS_COUNT_MAX: Final = 10_000
"""Verifications per partition that are remembered; those that fail are not ended."""

NO_COORDINATOR_EPOCH: Final = -1


class VerificationGuard:
    """Permits one first batch of a transaction, unless a marker was appended meanwhile."""

    __slots__ = ()


class Verification(msgspec.Struct):
    """A transaction that the coordinator is asked about before its first batch is appended."""

    guard: VerificationGuard
    epoch: int
    lowest_sequence: int
    """The first batch must have this sequence or a lower one: others would leave a gap if it was
    refused for a moment and is sent again."""
    adds_partition: bool
    """Whether the coordinator adds the partition to the transaction (KIP-890)."""


class _Marker(NamedTuple):
    """A marker of a producer; the offset says whether a segment that ends before it knows it."""

    offset: int
    epoch: int
    coordinator_epoch: int
    time_ms: int


class _Ended:
    """Transactions that have ended, with what is needed where they are still open."""

    __slots__ = ("_epochs", "_started_ms", "spans")

    def __init__(self) -> None:
        self.spans = TransactionSpans()
        self._epochs = array("h")
        self._started_ms = array("q")

    def append(self, transaction: OpenTransaction, last_offset: int) -> None:
        self.spans.append(transaction.producer_id, transaction.first_offset, last_offset)
        self._epochs.append(transaction.epoch)
        self._started_ms.append(transaction.started_ms)

    def open_at(self, offset: int) -> Iterator[OpenTransaction]:
        """Those that begin below an offset and end at it or later."""
        for number in self.spans.overlapping(offset, offset):
            producer_id, first_offset, _ = self.spans[number]
            yield OpenTransaction(
                producer_id, self._epochs[number], first_offset, self._started_ms[number]
            )

    def drop_below(self, offset: int) -> None:
        count = self.spans.drop_below(offset)
        del self._epochs[:count], self._started_ms[:count]

    def copy(self) -> "_Ended":
        copied = _Ended()
        copied.spans = self.spans.copy()
        copied._epochs = self._epochs[:]
        copied._started_ms = self._started_ms[:]
        return copied


class Transactions:
    """The transactions of one partition."""

    __slots__ = (
        "_aborted",
        "_committed",
        "_marked",
        "_rolled_offset",
        "_undurable",
        "_unstable",
        "_verifications",
        "first_unstable_offset",
        "open",
    )

    def __init__(self) -> None:
        self.open: dict[int, OpenTransaction] = {}
        """By producer id, ascending by first offset."""
        self.first_unstable_offset: int | None = None
        """The first offset of the oldest transaction that is open, or whose marker is not durable;
        None if there is none."""
        self._unstable: OrderedDict[int, None] = OrderedDict()
        """The first offsets of all such transactions, ascending."""
        self._undurable: list[tuple[int, int]] = []
        """First offset and marker of those that have ended, ascending by marker."""
        self._committed: _Ended | None = None
        self._aborted: _Ended | None = None
        self._rolled_offset = 0
        """Markers below it are in segments."""
        self._marked: dict[int, tuple[_Marker, ...]] = {}
        """Markers by producer id, oldest first; the producer marked longest ago first."""
        self._verifications: dict[int, Verification] = {}

    @property
    def is_empty(self) -> bool:
        """Whether a section would have nothing to say."""
        return not (self.open or self._marked or self._aborted or self._committed)

    @property
    def oldest_started_ms(self) -> int | None:
        """When the oldest open transaction began; None if none is open."""
        oldest = next(iter(self.open.values()), None)
        return None if oldest is None else oldest.started_ms

    def describe(self) -> list[OpenTransaction]:
        """The open transactions, the oldest first."""
        return list(self.open.values())

    # --- changes --------------------------------------------------------------------------------

    def begin(self, producer_id: int, epoch: int, first_offset: int, now_ms: int) -> None:
        """Record the first batch of a transaction."""
        self.open[producer_id] = OpenTransaction(producer_id, epoch, first_offset, now_ms)
        self._unstable[first_offset] = None
        if self.first_unstable_offset is None:
            self.first_unstable_offset = first_offset

    def end(
        self, marked: MarkedProducer, offset: int, high_watermark: int, *, is_abort: bool
    ) -> None:
        """Record a marker, whether the producer has a transaction here or not."""
        self._mark(marked, offset, high_watermark)
        transaction = self.open.pop(marked.producer_id, None)
        if transaction is None:
            return
        if is_abort:
            self._aborted = self._aborted or _Ended()
            self._aborted.append(transaction, offset)
        else:
            self._committed = self._committed or _Ended()
            self._committed.append(transaction, offset)
        self._undurable.append((transaction.first_offset, offset))
        self.advance_high_watermark(high_watermark)

    def _mark(self, marked: MarkedProducer, offset: int, high_watermark: int) -> None:
        earlier = self._marked.pop(marked.producer_id, ())
        if not earlier and len(self._marked) >= MARKED_COUNT_MAX:
            del self._marked[next(iter(self._marked))]
        markers = (*earlier, _Marker(offset, *marked[1:]))
        # Invariant 2: drop a marker once a later one is durable.
        while len(markers) > 1 and markers[1].offset < high_watermark:
            markers = markers[1:]
        self._marked[marked.producer_id] = markers

    def advance_high_watermark(self, high_watermark: int) -> None:
        """Let the last stable offset advance over transactions whose markers are durable now."""
        count = 0
        for first_offset, last_offset in self._undurable:
            if last_offset >= high_watermark:
                break
            del self._unstable[first_offset]
            count += 1
        if count:
            del self._undurable[:count]
            self.first_unstable_offset = next(iter(self._unstable), None)

    def mark_rolled(self, offset: int, cached_offset: int | None) -> None:
        """Forget the ended transactions whose markers are in segments.

        Aborted ones are kept if the tail has the records from `cached_offset`, so that readers of
        the tail find them here.
        """
        self._rolled_offset = offset
        if self._committed is not None:
            self._committed.drop_below(offset)
            if not len(self._committed.spans):
                self._committed = None
        if self._aborted is not None:
            kept_offset = offset if cached_offset is None else min(offset, cached_offset)
            self._aborted.drop_below(kept_offset)
            if not len(self._aborted.spans):
                self._aborted = None

    def retain(self, producers: Container[int]) -> None:
        """Forget the markers of producers that are not known any more."""
        for producer_id in [each for each in self._marked if each not in producers]:
            del self._marked[producer_id]

    # --- questions ------------------------------------------------------------------------------

    def marker_of(self, producer_id: int) -> MarkedProducer | None:
        """The newest marker of a producer."""
        markers = self._marked.get(producer_id)
        return None if markers is None else MarkedProducer(producer_id, *markers[-1][1:])

    def aborted(self, from_offset: int, to_offset: int) -> Iterator[AbortedTransaction]:
        """The aborted transactions that overlap a range, if the tail has it from its beginning."""
        if self._aborted is None:
            return
        spans = self._aborted.spans
        for number in spans.overlapping(from_offset, to_offset):
            yield spans[number]

    # --- verification ---------------------------------------------------------------------------

    def start_verification(
        self, producer_id: int, epoch: int, base_sequence: int, *, adds_partition: bool
    ) -> VerificationGuard:
        """The guard that permits the first batch; batches sent at the same time share it."""
        known = self._verifications.get(producer_id)
        if known is None:
            if len(self._verifications) >= VERIFICATIONS_COUNT_MAX:
                del self._verifications[next(iter(self._verifications))]
            known = Verification(VerificationGuard(), epoch, base_sequence, adds_partition)
            self._verifications[producer_id] = known
        elif epoch > known.epoch:
            known.epoch, known.lowest_sequence = epoch, base_sequence
            known.adds_partition = adds_partition
        elif epoch == known.epoch:
            known.lowest_sequence = min(known.lowest_sequence, base_sequence)
        return known.guard

    def verification_of(self, producer_id: int) -> Verification | None:
        return self._verifications.get(producer_id)

    def end_verification(self, producer_id: int) -> None:
        """Invalidate the guard of a producer, because a batch or a marker was appended."""
        self._verifications.pop(producer_id, None)

    # --- snapshots ------------------------------------------------------------------------------

    def copy(self) -> "Transactions":
        """A copy that a thread can encode while the original changes."""
        copied = Transactions()
        if not self.is_empty:
            copied.open = self.open.copy()
            copied._committed = self._committed and self._committed.copy()
            copied._aborted = self._aborted and self._aborted.copy()
            copied._marked = self._marked.copy()
            copied._rolled_offset = self._rolled_offset
        return copied

    def section_at(self, end_offset: int) -> TransactionSection:
        """What the index of a segment says that ends at an offset, and begins at the rolled one."""
        opened = [each for each in self.open.values() if each.first_offset < end_offset]
        aborted = TransactionSpans()
        for ended in (self._committed, self._aborted):
            if ended is not None:
                opened += ended.open_at(end_offset)
        if self._aborted is not None:
            for number in self._aborted.spans.ending(self._rolled_offset, end_offset):
                aborted.append(*self._aborted.spans[number])
        marked = []
        for producer_id, markers in self._marked.items():
            below = [marker for marker in markers if marker.offset < end_offset]
            if below:
                marked.append(MarkedProducer(producer_id, *below[-1][1:]))
        return TransactionSection(
            sorted(opened, key=lambda each: each.first_offset), aborted, marked
        )

    @classmethod
    def restore(cls, section: TransactionSection) -> "Transactions":
        """The state at the end of a segment, whose batches are all durable."""
        transactions = cls()
        for opened in section.open:
            transactions.begin(*opened)
        for marked in sorted(section.marked, key=lambda each: each.time_ms):
            transactions._marked[marked.producer_id] = (_Marker(-1, *marked[1:]),)
        return transactions
