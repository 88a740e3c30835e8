"""Producer state: duplicates are detected, gaps and old epochs rejected, also after recovery."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafscale.errors import (
    DamagedObjectError,
    InvalidProducerEpochError,
    OutOfOrderSequenceError,
    RefusedError,
)
from kafscale.storage.formats.index_section import encode_section
from kafscale.storage.log.state.producer_state import (
    WINDOW_BATCHES,
    Duplicate,
    Producers,
    ProducerState,
)

PRODUCER = 7
SEQUENCE_MAX = 2**31 - 1


@dataclass
class Log:
    """A log of batches with one record each, durable by default."""

    producers: Producers = field(default_factory=Producers)
    end_offset: int = 0

    def append(self, sequence, *, epoch=0, producer_id=PRODUCER, count=1, timestamp_ms=1000):
        last_sequence = (sequence + count - 1) & SEQUENCE_MAX
        assert self.producers.check(producer_id, epoch, sequence, last_sequence) is None
        base_offset, self.end_offset = self.end_offset, self.end_offset + count
        self.producers.record(
            producer_id,
            epoch,
            sequence,
            last_sequence,
            base_offset,
            self.end_offset - 1,
            timestamp_ms,
            self.end_offset,
        )

    def check(self, sequence, *, epoch=0, last=None):
        return self.producers.check(PRODUCER, epoch, sequence, sequence if last is None else last)


def test_consecutive_batches_are_new():
    log = Log()
    for sequence in range(20):
        log.append(sequence)
    assert log.end_offset == 20


def test_each_of_the_last_five_batches_is_detected_as_duplicate():
    log = Log()
    for sequence in range(8):
        log.append(sequence, timestamp_ms=1000 + sequence)
    for sequence in range(3, 8):
        assert log.check(sequence) == Duplicate(sequence, sequence, 1000 + sequence)
    with pytest.raises(OutOfOrderSequenceError):
        log.check(2)


def test_duplicate_must_match_first_and_last_sequence():
    log = Log()
    log.append(0, count=10)
    assert log.check(0, last=9) == Duplicate(0, 9, 1000)
    with pytest.raises(OutOfOrderSequenceError):
        log.check(0, last=8)
    with pytest.raises(OutOfOrderSequenceError):
        log.check(5, last=9)


def test_sequence_gap_is_rejected_with_its_position():
    log = Log()
    log.append(0)
    with pytest.raises(OutOfOrderSequenceError, match="sequence 2 after 0"):
        log.check(2)


def test_unknown_producer_may_start_at_any_sequence():
    log = Log()
    log.append(41)
    assert log.check(42) is None


def test_sequences_wrap_to_0():
    log = Log()
    log.append(SEQUENCE_MAX - 1, count=2)
    log.append(0)
    assert log.check(SEQUENCE_MAX - 1, last=SEQUENCE_MAX) == Duplicate(0, 1, 1000)


def test_batch_may_span_the_sequence_wrap():
    log = Log()
    log.append(SEQUENCE_MAX, count=3)
    assert log.check(SEQUENCE_MAX, last=1) == Duplicate(0, 2, 1000)
    assert log.check(2) is None


def test_new_epoch_starts_at_sequence_0():
    log = Log()
    log.append(0)
    with pytest.raises(OutOfOrderSequenceError, match="begins epoch 1 with sequence 1"):
        log.check(1, epoch=1)
    log.append(0, epoch=1)
    assert log.check(0, epoch=1) == Duplicate(1, 1, 1000)


def test_old_epoch_is_rejected_even_for_duplicates():
    log = Log()
    log.append(0)
    log.append(0, epoch=1)
    with pytest.raises(InvalidProducerEpochError, match="epoch 0, but is at 1"):
        log.check(0)


def test_producers_are_independent():
    log = Log()
    log.append(0, producer_id=1)
    log.append(0, producer_id=2)
    log.append(1, producer_id=1)
    assert log.producers.describe() == [ProducerState(2, 0, 0, 1000), ProducerState(1, 0, 1, 1000)]


def test_producer_idle_longest_is_dropped_at_the_limit():
    log = Log(Producers(count_max=2))
    log.append(0, producer_id=1)
    log.append(0, producer_id=2)
    log.append(1, producer_id=1)
    log.append(0, producer_id=3)
    assert [state.producer_id for state in log.producers.describe()] == [1, 3]


def test_snapshot_with_a_lower_limit_keeps_the_latest_producers_and_those_with_transactions():
    log = Log()
    for producer_id in (1, 2, 3, 4):
        log.append(0, producer_id=producer_id)
    fewer = Producers.decode("key", log.producers.snapshot_at(4), count_max=2)
    fewer.keep({1})
    assert [state.producer_id for state in fewer.describe()] == [1, 4]
    fewer.keep({1, 4})
    fewer.record(5, 0, 0, 0, 4, 4, 1000, 5)
    assert [state.producer_id for state in fewer.describe()] == [1, 4, 5], "none can be dropped"


def test_producers_expire_by_their_last_append():
    log = Log()
    log.append(0, producer_id=1, timestamp_ms=1000)
    log.append(0, producer_id=2, timestamp_ms=2000)
    assert log.producers.expire(now_ms=1999, expiration_ms=1000) == 0
    assert log.producers.expire(now_ms=2000, expiration_ms=1000) == 1
    assert [state.producer_id for state in log.producers.describe()] == [2]


def test_only_batches_needed_after_a_crash_are_kept():
    """The state of a busy producer stays small once its batches are durable."""
    log = Log()
    for sequence in range(1000):
        log.append(sequence)
    assert len(log.producers._producers[PRODUCER]) == WINDOW_BATCHES


def test_copy_in_a_thread_does_not_see_what_is_recorded_meanwhile():
    producers = Producers()
    for offset in range(2000):
        producers.record(offset % 500, 0, offset // 500, offset // 500, offset, offset, 1, offset)
    expected = producers.snapshot_at(2000)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as threads:
            snapshots = [threads.submit(producers.copy().snapshot_at, 2000) for _ in range(20)]
            for offset in range(2000, 30_000):
                sequence = offset // 700
                producers.record(offset % 700, 0, sequence, sequence, offset, offset, 1, 2000)
            assert {snapshot.result() for snapshot in snapshots} == {expected}
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("cut", range(48))
def test_decode_rejects_a_truncated_snapshot(cut):
    log = Log()
    log.append(0)
    section = log.producers.snapshot_at(1)
    assert len(section) > cut
    with pytest.raises(DamagedObjectError):
        Producers.decode("key", section[:cut])


@pytest.mark.parametrize(
    ("version", "body", "reason"),
    [
        (2, bytes(4), "version 2"),
        (1, bytes(3), "truncated"),
        (1, bytes([0, 0, 0, 1]), "truncated"),
        (1, bytes(5), "1 extra bytes"),
        (1, bytes([0, 0, 0, 1]) + bytes(12), "without batches"),
    ],
)
def test_decode_rejects_an_invalid_snapshot(version, body, reason):
    with pytest.raises(DamagedObjectError, match=reason):
        Producers.decode("key", encode_section(version, body))


# --- recovery -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    producer_id: int
    epoch: int
    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int


class Model:
    """Kafka's rules applied to all appended batches, without a memory limit."""

    def __init__(self):
        self.batches = []

    def check(self, producer_id, epoch, base_sequence, last_sequence):
        own = [batch for batch in self.batches if batch.producer_id == producer_id]
        if not own:
            return None
        current = own[-1]
        if epoch < current.epoch:
            return InvalidProducerEpochError
        if epoch > current.epoch:
            return OutOfOrderSequenceError if base_sequence else None
        window = [batch for batch in own if batch.epoch == epoch][-WINDOW_BATCHES:]
        for batch in window:
            if (batch.base_sequence, batch.last_sequence) == (base_sequence, last_sequence):
                return Duplicate(batch.base_offset, batch.last_offset, batch.base_offset)
        if base_sequence == (current.last_sequence + 1) % (SEQUENCE_MAX + 1):
            return None
        return OutOfOrderSequenceError


def answer(producers, attempt):
    try:
        return producers.check(*attempt)
    except RefusedError as error:
        return type(error)


def record(producers, batch, high_watermark):
    producers.record(
        batch.producer_id,
        batch.epoch,
        batch.base_sequence,
        batch.last_sequence,
        batch.base_offset,
        batch.last_offset,
        batch.base_offset,
        high_watermark,
    )


# Few producers, epochs and sequences near both limits, so that they collide often.
sequences = st.one_of(st.integers(0, 12), st.integers(SEQUENCE_MAX - 3, SEQUENCE_MAX))
attempts = st.builds(
    lambda producer_id, epoch, base_sequence, count: (
        producer_id,
        epoch,
        base_sequence,
        (base_sequence + count - 1) & SEQUENCE_MAX,
    ),
    st.integers(1, 2),
    st.integers(0, 2),
    sequences,
    st.integers(1, 2),
)


@st.composite
def histories(draw):
    """Attempts of producers, the lag of durability, the segment end and the crash."""
    tried = draw(st.lists(attempts, max_size=60))
    follow = draw(st.lists(st.booleans(), min_size=len(tried), max_size=len(tried)))
    behind = draw(st.lists(st.integers(0, 12), min_size=len(tried), max_size=len(tried)))
    return list(zip(tried, follow, behind, strict=True))


def run(history):
    """Append what the model accepts, and compare every result."""
    model, producers = Model(), Producers()
    next_sequences = {}
    high_watermark = 0
    for (producer_id, epoch, base_sequence, last_sequence), follows, behind in history:
        if follows:
            # Most real batches continue the sequence; random ones rarely would.
            count = (last_sequence - base_sequence) & SEQUENCE_MAX
            epoch, base_sequence = next_sequences.get(producer_id, (epoch, base_sequence))  # noqa: PLW2901
            last_sequence = (base_sequence + count) & SEQUENCE_MAX  # noqa: PLW2901
        attempt = (producer_id, epoch, base_sequence, last_sequence)
        expected = model.check(*attempt)
        assert answer(producers, attempt) == expected
        if expected is None:
            base_offset = model.batches[-1].last_offset + 1 if model.batches else 0
            count = ((last_sequence - base_sequence) & SEQUENCE_MAX) + 1
            batch = Batch(*attempt, base_offset, base_offset + count - 1)
            record(producers, batch, high_watermark)
            model.batches.append(batch)
            next_sequences[producer_id] = (epoch, (last_sequence + 1) & SEQUENCE_MAX)
            durable = model.batches[max(0, len(model.batches) - 1 - behind)].last_offset + 1
            high_watermark = max(high_watermark, durable)
    return model, producers, high_watermark


@settings(max_examples=300)
@given(histories(), st.data())
def test_snapshot_and_replay_equal_the_state_of_the_remaining_log(history, data):
    """After a crash at any time, batches that were not durable are lost.

    The next owner decodes the snapshot of a segment's end and replays the durable batches after it.
    Its results must be as if only those batches had been appended.
    """
    model, producers, high_watermark = run(history)
    ends = [0, *(batch.last_offset + 1 for batch in model.batches)]
    log_end = data.draw(st.sampled_from([end for end in ends if end >= high_watermark]))
    segment_end = data.draw(st.sampled_from([end for end in ends if end <= log_end]))

    successor = Producers.decode("key", producers.snapshot_at(segment_end))
    model.batches = [batch for batch in model.batches if batch.last_offset < log_end]
    for batch in model.batches:
        if batch.base_offset >= segment_end:
            record(successor, batch, log_end)

    for batch in model.batches:
        for base_sequence in (batch.base_sequence, (batch.last_sequence + 1) & SEQUENCE_MAX):
            for epoch in (batch.epoch, batch.epoch + 1):
                attempt = (batch.producer_id, epoch, base_sequence, batch.last_sequence)
                assert answer(successor, attempt) == model.check(*attempt)
    # The order in which producers are dropped is the same.
    order = dict.fromkeys(batch.producer_id for batch in reversed(model.batches))
    assert [state.producer_id for state in successor.describe()] == list(reversed(order))
