"""Transactions of a partition: Kafka's rules, and the same state after rolls and crashes."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kafscale.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kafscale.records.batch import CONTROL_BIT, NO_SEQUENCE, TRANSACTIONAL_BIT, BatchHeader
from kafscale.records.control import ControlType, EndMarker
from kafscale.storage.log.state.producer_state import Duplicate, Producers
from kafscale.storage.log.state.transaction_rules import TransactionRules
from kafscale.storage.log.state.transaction_state import Transactions, VerificationGuard
from kafscale.storage.log.state.transactions import (
    AbortedTransaction,
    MarkedProducer,
    OpenTransaction,
    TransactionSection,
    TransactionSpans,
)

PRODUCER = 7
ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


class Log:
    """The state of a log whose batches are durable at once, unless it says otherwise."""

    def __init__(self) -> None:
        self.producers = Producers()
        self.transactions = Transactions()
        self.end_offset = 0
        self.high_watermark: int | None = None
        self.rules = TransactionRules(self.producers, self.transactions)

    def header(
        self, sequence: int, *, epoch: int = 0, producer_id: int = PRODUCER, attributes: int
    ) -> BatchHeader:
        return BatchHeader(
            0, 50, 0, 2, 0, attributes, 0, 1000, 1000, producer_id, epoch, sequence, 1
        )

    def append(
        self,
        sequence: int,
        *,
        epoch: int = 0,
        producer_id: int = PRODUCER,
        guard: VerificationGuard | None = None,
        transactional: bool = True,
    ) -> Duplicate | None:
        attributes = TRANSACTIONAL_BIT if transactional else 0
        header = self.header(sequence, epoch=epoch, producer_id=producer_id, attributes=attributes)
        return self._append(header, None, guard)

    def mark(
        self,
        control_type: ControlType,
        *,
        epoch: int = 0,
        producer_id: int = PRODUCER,
        coordinator_epoch: int = 0,
    ) -> None:
        attributes = TRANSACTIONAL_BIT | CONTROL_BIT
        header = self.header(-1, epoch=epoch, producer_id=producer_id, attributes=attributes)
        self._append(header, EndMarker(control_type, coordinator_epoch), None)

    def _append(
        self, header: BatchHeader, marker: EndMarker | None, guard: VerificationGuard | None
    ) -> Duplicate | None:
        duplicate = self.rules.check(header, marker, guard)
        if duplicate is None:
            offset, self.end_offset = self.end_offset, self.end_offset + 1
            high_watermark = self.end_offset if self.high_watermark is None else self.high_watermark
            self.rules.record(header, marker, offset, 1000, high_watermark)
        return duplicate

    def verify(
        self, sequence: int, *, epoch: int = 0, adds_partition: bool = False
    ) -> VerificationGuard:
        return self.rules.start_verification(
            PRODUCER, epoch, sequence, adds_partition=adds_partition
        )

    def begin(self, sequence: int = 0, *, epoch: int = 0) -> None:
        self.append(sequence, epoch=epoch, guard=self.verify(sequence, epoch=epoch))

    def needs_verification(self, sequence: int, *, epoch: int = 0) -> bool:
        header = self.header(sequence, epoch=epoch, attributes=TRANSACTIONAL_BIT)
        return self.rules.needs_verification(header)


# --- guards ---------------------------------------------------------------------------------------


def test_first_batch_of_a_transaction_needs_a_guard_and_later_ones_do_not() -> None:
    log = Log()
    assert log.needs_verification(0)
    with pytest.raises(InvalidTransactionStateError, match="not part of an ongoing transaction"):
        log.append(0)
    log.append(0, guard=log.verify(0))
    assert not log.needs_verification(1)
    log.append(1)
    log.mark(COMMIT)
    assert log.needs_verification(2)
    assert log.needs_verification(1), "a duplicate of an ended transaction, too"
    assert log.append(1) == Duplicate(1, 1, 1000)
    with pytest.raises(InvalidTransactionStateError):
        log.append(2)


def test_batches_without_the_transactional_bit_need_no_guard() -> None:
    log = Log()
    header = log.header(0, attributes=0)
    assert not log.rules.needs_verification(header)
    log.append(0, transactional=False)


def test_guard_is_valid_for_one_transaction() -> None:
    log = Log()
    guard = log.verify(0)
    assert log.verify(1) is guard, "batches that are sent at the same time share it"
    log.append(0, guard=guard)
    log.append(1, guard=guard)
    log.mark(COMMIT)
    with pytest.raises(InvalidTransactionStateError):
        log.append(2, guard=guard)


def test_marker_during_the_verification_invalidates_the_guard() -> None:
    """Else the transaction of the batch would stay open: its marker was appended before it."""
    log = Log()
    guard = log.verify(0)
    log.mark(ABORT)
    with pytest.raises(InvalidTransactionStateError):
        log.append(0, guard=guard)


def test_marker_that_began_the_epoch_does_not_invalidate_the_guard() -> None:
    """With KIP-890, a producer may send the next transaction before all markers are written."""
    log = Log()
    log.begin(0)
    guard = log.verify(0, epoch=1, adds_partition=True)
    log.mark(COMMIT, epoch=1)
    log.append(0, epoch=1, guard=guard)
    assert log.transactions.describe() == [OpenTransaction(PRODUCER, 1, 2, 1000)]


def test_verification_of_an_old_epoch_is_refused() -> None:
    log = Log()
    log.mark(COMMIT, epoch=3)
    with pytest.raises(InvalidProducerEpochError):
        log.verify(0, epoch=2)
    assert log.needs_verification(0, epoch=2)
    with pytest.raises(InvalidProducerEpochError):
        log.append(0, epoch=2)


def test_higher_sequence_does_not_overtake_a_lower_one_that_waits_for_its_verification() -> None:
    log = Log()
    guard = log.verify(5)
    assert log.verify(6) is guard
    with pytest.raises(OutOfOrderSequenceError):
        log.append(6, guard=guard)
    log.append(5, guard=guard)
    log.append(6)


def test_new_epoch_resets_the_lowest_sequence() -> None:
    log = Log()
    log.verify(0)
    guard = log.verify(3, epoch=1)
    log.append(3, epoch=1, guard=guard)


def test_producer_of_kip_890_begins_with_sequence_0() -> None:
    log = Log()
    guard = log.verify(4, adds_partition=True)
    with pytest.raises(OutOfOrderSequenceError):
        log.append(4, guard=guard)


def test_epoch_of_a_transaction_may_grow_if_it_is_verified() -> None:
    log = Log()
    log.begin(0)
    with pytest.raises(InvalidTransactionStateError):
        log.append(0, epoch=1)
    log.begin(0, epoch=1)
    assert log.transactions.describe() == [OpenTransaction(PRODUCER, 0, 0, 1000)]
    assert not log.needs_verification(1, epoch=1)


# --- markers --------------------------------------------------------------------------------------


def test_other_batches_of_a_producer_with_a_transaction_are_refused() -> None:
    log = Log()
    log.begin(0)
    with pytest.raises(InvalidTransactionStateError):
        log.append(1, transactional=False)
    log.append(0, transactional=False, producer_id=8)
    log.mark(COMMIT)
    log.append(1, transactional=False)


def test_sequences_continue_after_a_marker_of_the_same_epoch() -> None:
    log = Log()
    log.begin(0)
    log.mark(COMMIT)
    log.begin(1)
    log.mark(ABORT)
    with pytest.raises(OutOfOrderSequenceError):
        log.begin(1 + 2)


def test_sequences_restart_after_a_marker_of_a_new_epoch() -> None:
    log = Log()
    log.begin(0)
    log.append(1)
    log.mark(COMMIT, epoch=1)
    with pytest.raises(InvalidProducerEpochError):
        log.append(2)
    with pytest.raises(OutOfOrderSequenceError):
        log.begin(2, epoch=1)
    log.begin(0, epoch=1)
    with pytest.raises(InvalidProducerEpochError):
        log.mark(COMMIT)


def test_producer_that_only_a_marker_has_named_begins_with_sequence_0() -> None:
    log = Log()
    log.mark(ABORT, epoch=4)
    [state] = log.producers.describe()
    assert (state.epoch, state.last_sequence) == (4, NO_SEQUENCE)
    with pytest.raises(OutOfOrderSequenceError):
        log.begin(1, epoch=4)
    log.begin(0, epoch=4)


def test_marker_of_an_old_coordinator_is_refused() -> None:
    log = Log()
    log.mark(COMMIT, coordinator_epoch=5)
    with pytest.raises(TransactionCoordinatorFencedError):
        log.mark(COMMIT, coordinator_epoch=4)
    log.begin(0)
    with pytest.raises(TransactionCoordinatorFencedError):
        log.mark(COMMIT, coordinator_epoch=4)
    log.mark(ABORT, coordinator_epoch=5)


def test_markers_may_be_repeated() -> None:
    log = Log()
    log.begin(0)
    for _ in range(2):
        log.mark(ABORT, epoch=1)
    assert list(log.transactions.aborted(0, 10)) == [AbortedTransaction(PRODUCER, 0, 1)]


def test_producers_with_a_transaction_are_not_dropped() -> None:
    log = Log()
    log.begin(0)
    log.append(0, transactional=False, producer_id=8)
    assert log.producers.expire(now_ms=10_000, expiration_ms=1) == 1
    assert PRODUCER in log.producers
    log.producers._count_max = 1
    log.append(0, transactional=False, producer_id=9)
    assert PRODUCER in log.producers
    log.mark(COMMIT)
    assert log.producers.expire(now_ms=10_000, expiration_ms=1) == 2
    log.transactions.retain(log.producers)
    assert log.transactions.marker_of(PRODUCER) is None


def test_last_stable_offset_advances_when_the_marker_is_durable() -> None:
    log = Log()
    log.high_watermark = 0
    log.append(0, transactional=False, producer_id=8)
    log.begin(0)
    assert log.transactions.first_unstable_offset == 1
    assert log.transactions.oldest_started_ms == 1000
    log.mark(COMMIT)
    assert log.transactions.oldest_started_ms is None
    assert log.transactions.first_unstable_offset == 1
    log.transactions.advance_high_watermark(2)
    assert log.transactions.first_unstable_offset == 1
    log.transactions.advance_high_watermark(3)
    assert log.transactions.first_unstable_offset is None


# --- rolls and crashes ----------------------------------------------------------------------------


class Entry:
    """A batch of one record in the model's log."""

    def __init__(self, header: BatchHeader, marker: EndMarker | None) -> None:
        self.header = header
        self.marker = marker


class Model:
    """The state of a log, computed from all of its batches."""

    def __init__(self, entries: list[Entry]) -> None:
        self.open: dict[int, int] = {}
        self.ended: list[tuple[AbortedTransaction, bool]] = []
        self.marked: dict[int, MarkedProducer] = {}
        self.next_sequences: dict[int, tuple[int, int]] = {}
        """The epoch and next sequence of each producer."""
        for offset, entry in enumerate(entries):
            header = entry.header
            producer_id, epoch = header.producer_id, header.producer_epoch
            known_epoch, next_sequence = self.next_sequences.get(producer_id, (-1, 0))
            if entry.marker is None:
                self.open.setdefault(producer_id, offset)
                self.next_sequences[producer_id] = (epoch, header.base_sequence + 1)
                continue
            if epoch != known_epoch:
                next_sequence = 0
            self.next_sequences[producer_id] = (epoch, next_sequence)
            self.marked[producer_id] = MarkedProducer(
                producer_id, epoch, entry.marker.coordinator_epoch, header.max_timestamp_ms
            )
            first_offset = self.open.pop(producer_id, None)
            if first_offset is not None:
                span = AbortedTransaction(producer_id, first_offset, offset)
                self.ended.append((span, entry.marker.control_type is ABORT))

    def aborted(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        return [
            span
            for span, is_abort in self.ended
            if is_abort and span.first_offset < to_offset and span.last_offset >= from_offset
        ]

    def last_stable_offset(self, high_watermark: int) -> int:
        undurable = [
            span.first_offset for span, _ in self.ended if span.last_offset >= high_watermark
        ]
        return min([high_watermark, *self.open.values(), *undurable])


class Histories(RuleBasedStateMachine):
    """Any interleaving of appends, markers, durability, rolls and crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.high_watermark = 0
        self.last_stable_offset = 0
        self.rolled_offset = 0
        self.cached_offset = 0
        self.segments: list[TransactionSection] = []
        self.snapshot = Producers().snapshot_at(0)
        self.log = Log()

    @property
    def model(self) -> Model:
        return Model(self.entries)

    def append(self, header: BatchHeader, marker: EndMarker | None) -> None:
        guard = None
        if self.log.rules.needs_verification(header):
            guard = self.log.rules.start_verification(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                adds_partition=False,
            )
        assert self.log.rules.check(header, marker, guard) is None
        self.log.rules.record(header, marker, len(self.entries), 1000, self.high_watermark)
        self.entries.append(Entry(header, marker))

    @rule(producer_id=st.integers(1, 4), bumps=st.sampled_from([0, 0, 0, 1]))
    def append_data(self, producer_id: int, bumps: int) -> None:
        epoch, sequence = self.model.next_sequences.get(producer_id, (0, 0))
        header = self.log.header(
            0 if bumps else sequence,
            epoch=epoch + bumps,
            producer_id=producer_id,
            attributes=TRANSACTIONAL_BIT,
        )
        self.append(header, None)

    @rule(
        producer_id=st.integers(1, 4),
        control_type=st.sampled_from(ControlType),
        bumps=st.integers(0, 1),
        newer=st.integers(0, 1),
    )
    def append_marker(
        self, producer_id: int, control_type: ControlType, bumps: int, newer: int
    ) -> None:
        model = self.model
        epoch, _ = model.next_sequences.get(producer_id, (0, 0))
        known = model.marked.get(producer_id)
        header = self.log.header(
            -1,
            epoch=epoch + bumps,
            producer_id=producer_id,
            attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        )
        coordinator_epoch = (known.coordinator_epoch if known else 0) + newer
        self.append(header, EndMarker(control_type, coordinator_epoch))

    @rule(count=st.integers(1, 8))
    def become_durable(self, count: int) -> None:
        self.high_watermark = min(self.high_watermark + count, len(self.entries))
        self.log.transactions.advance_high_watermark(self.high_watermark)

    @rule(data=st.data())
    def evict(self, data: st.DataObject) -> None:
        """The tail keeps what is not rolled, and some of what is."""
        self.cached_offset = data.draw(st.integers(self.cached_offset, self.rolled_offset))

    @rule(data=st.data())
    def roll(self, data: st.DataObject) -> None:
        if self.rolled_offset == self.high_watermark:
            return
        end_offset = data.draw(st.integers(self.rolled_offset + 1, self.high_watermark))
        section = self.log.transactions.copy().section_at(end_offset)
        self.segments.append(TransactionSection.decode("key", section.encode()))
        self.snapshot = self.log.producers.copy().snapshot_at(end_offset)
        self.log.transactions.mark_rolled(end_offset, self.cached_offset)
        self.rolled_offset = end_offset

    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        end_offset = data.draw(st.integers(self.high_watermark, len(self.entries)))
        del self.entries[end_offset:]
        self.high_watermark = end_offset
        recovered = Log()
        recovered.producers = Producers.decode("key", self.snapshot)
        if self.segments:
            recovered.transactions = Transactions.restore(self.segments[-1])
        recovered.rules = TransactionRules(recovered.producers, recovered.transactions)
        for offset, entry in enumerate(self.entries):
            if offset >= self.rolled_offset:
                recovered.rules.record(entry.header, entry.marker, offset, 1000, offset + 1)
        self.cached_offset = self.rolled_offset
        recovered.transactions.mark_rolled(self.rolled_offset, self.cached_offset)
        self.log = recovered

    @invariant()
    def state_is_that_of_the_batches(self) -> None:
        transactions, model = self.log.transactions, self.model
        opened = {each.producer_id: each.first_offset for each in transactions.describe()}
        assert opened == model.open
        assert list(opened.values()) == sorted(opened.values())
        for producer_id, (epoch, next_sequence) in model.next_sequences.items():
            assert self.log.producers.epoch_of(producer_id) == epoch
            assert self.log.producers.last_sequence_of(producer_id) == next_sequence - 1
            assert transactions.marker_of(producer_id) == model.marked.get(producer_id)

    @invariant()
    def sections_are_those_of_the_batches_before_them(self) -> None:
        for end_offset in range(self.rolled_offset, self.high_watermark + 1):
            section = self.log.transactions.section_at(end_offset)
            model = Model(self.entries[:end_offset])
            opened = [(each.producer_id, each.first_offset) for each in section.open]
            assert opened == sorted(model.open.items(), key=lambda each: each[1])
            # A marker may be missing that a later durable one has displaced: the replay has it.
            displaced = {
                entry.header.producer_id
                for entry in self.entries[end_offset : self.high_watermark]
                if entry.marker is not None
            }
            marked = {each.producer_id: each for each in section.marked}
            assert marked.items() <= model.marked.items()
            assert model.marked.keys() - marked.keys() <= displaced
            aborted = list(section.aborted)
            assert aborted == model.aborted(self.rolled_offset, end_offset)

    @invariant()
    def last_stable_offset_is_right_and_never_moves_back(self) -> None:
        first_unstable = self.log.transactions.first_unstable_offset
        found = self.high_watermark
        if first_unstable is not None:
            found = min(found, first_unstable)
        assert found == self.model.last_stable_offset(self.high_watermark)
        assert found >= self.last_stable_offset
        self.last_stable_offset = found

    @invariant()
    def aborted_transactions_are_found(self) -> None:
        for from_offset in range(0, len(self.entries) + 1, 3):
            for to_offset in range(from_offset, len(self.entries) + 1, 4):
                found = [
                    segment.aborted[number]
                    for segment in self.segments
                    for number in segment.aborted.overlapping(from_offset, to_offset)
                ]
                transactions = self.log.transactions
                found += transactions.aborted(max(from_offset, self.rolled_offset), to_offset)
                assert found == self.model.aborted(from_offset, to_offset)
                if from_offset >= self.cached_offset:
                    cached = list(transactions.aborted(from_offset, to_offset))
                    assert cached == self.model.aborted(from_offset, to_offset)


def test_every_history_leads_to_the_state_of_its_batches() -> None:
    run_state_machine_as_test(
        Histories, settings=settings(max_examples=150, stateful_step_count=40, deadline=None)
    )


@st.composite
def sections(draw: st.DrawFn) -> TransactionSection:
    offsets = sorted(draw(st.sets(st.integers(0, 10**6), max_size=8)))
    opened = [OpenTransaction(number, 1, offset, offset) for number, offset in enumerate(offsets)]
    marked = [MarkedProducer(number, 2, 3, 4) for number in draw(st.sets(st.integers(0, 99)))]
    return TransactionSection(opened, TransactionSpans(), sorted(marked))


@given(sections())
def test_restored_state_is_encoded_as_before(section: TransactionSection) -> None:
    again = Transactions.restore(section).section_at(10**7)
    assert again.encode() == section.encode()


def test_copy_in_a_thread_does_not_see_later_changes() -> None:
    log = Log()
    log.begin(0)
    log.mark(ABORT)
    log.begin(1)

    def states() -> Iterator[bytes]:
        copied = log.transactions.copy()
        yield copied.section_at(3).encode()
        log.append(2)
        log.mark(COMMIT, epoch=1)
        log.transactions.mark_rolled(3, 3)
        yield copied.section_at(3).encode()

    before, after = states()
    assert before == after
