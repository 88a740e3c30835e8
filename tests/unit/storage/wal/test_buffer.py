"""The open object, and the seal policy by table and in a simulation of arrivals and uploads."""

import heapq
import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.storage.wal.buffer import OpenObject, PutBudget, Seal, SealPolicy, SealReason, Wait

POLICY = SealPolicy(
    flush_bytes=1000, flush_messages=10, flush_interval_ms=500, uploads_max=8, idle_uploads_max=2
)
WAIT_FOR_EVENT = Wait(None)


def opened(*, size_bytes=1, count=1, now_ms=0, flush_requested=False):
    """An object with one batch in it."""
    object_ = OpenObject()
    object_.add("events-0", memoryview(bytes(size_bytes)), 0, count - 1, count, 77, now_ms)
    object_.flush_requested = flush_requested
    return object_


def spent(puts_per_second=1.0, *, now_ms=0):
    """A budget whose next token comes a second after `now_ms`, at the default rate."""
    budget = PutBudget(puts_per_second, burst=1)
    budget.consume(now_ms)
    return budget


# --- the open object ------------------------------------------------------------------------------


def test_open_object_groups_batches_by_partition_in_order_of_arrival():
    object_ = OpenObject()
    assert object_.is_empty
    first, second, third = memoryview(b"first"), memoryview(b"second"), memoryview(b"third")
    object_.add("b", first, 10, 12, 3, 500, now_ms=7)
    object_.add("a", second, 0, 0, 1, 100, now_ms=8)
    object_.add("b", third, 13, 13, 1, 400, now_ms=9)
    b, a = object_.partitions()
    assert (b.key, b.base_offset, b.last_offset, b.count) == ("b", 10, 13, 4)
    assert (b.max_timestamp_ms, b.size_bytes) == (500, 10)
    assert (a.key, a.base_offset, a.last_offset, a.count) == ("a", 0, 0, 1)
    assert b.buffers[0] is first
    assert b.buffers[1] is third
    assert (object_.size_bytes, object_.count, object_.opened_ms) == (16, 5, 7)


def test_open_object_asserts_contiguous_offsets():
    object_ = OpenObject()
    object_.add("events-0", memoryview(b"x"), 0, 0, 1, 77, now_ms=0)
    with pytest.raises(AssertionError, match="events-0: gap before offset 2"):
        object_.add("events-0", memoryview(b"x"), 2, 2, 1, 0, now_ms=0)


# --- the decision ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("object_", "now_ms", "uploads", "decision"),
    [
        (OpenObject(), 10_000, 0, WAIT_FOR_EVENT),
        (opened(size_bytes=1000), 0, 0, Seal(SealReason.BYTES)),
        (opened(size_bytes=1000), 0, 7, Seal(SealReason.BYTES)),
        (opened(size_bytes=1000), 0, 8, WAIT_FOR_EVENT),
        (opened(count=10), 0, 7, Seal(SealReason.MESSAGES)),
        (opened(now_ms=100), 599, 0, Wait(600)),
        (opened(now_ms=100), 600, 0, Seal(SealReason.INTERVAL)),
        (opened(now_ms=100), 600, 8, WAIT_FOR_EVENT),
        (opened(flush_requested=True), 0, 7, Seal(SealReason.EXPLICIT)),
        (opened(flush_requested=True), 0, 8, WAIT_FOR_EVENT),
        (opened(), 0, 0, Wait(500)),
    ],
)
def test_due_object_waits_only_for_an_upload_slot(object_, now_ms, uploads, decision):
    """The budget is used up for ten seconds, which affects only the idle rule."""
    assert POLICY.decide(object_, now_ms, uploads, spent(0.1)) == decision


@pytest.mark.parametrize(
    ("uploads", "budget", "decision"),
    [
        (0, PutBudget(None), Seal(SealReason.IDLE)),
        (1, PutBudget(None), Seal(SealReason.IDLE)),
        (2, PutBudget(None), Wait(500)),
        (0, spent(10), Wait(100)),
        (0, spent(1), Wait(500)),
        (2, spent(10), Wait(500)),
    ],
)
def test_object_is_sealed_early_if_a_slot_is_idle_and_the_budget_allows(uploads, budget, decision):
    assert POLICY.decide(opened(), 0, uploads, budget) == decision


# --- coalescing -----------------------------------------------------------------------------------

COALESCING = replace(
    POLICY, flush_bytes=10**6, flush_messages=10**6, coalesce_ms=2, coalesce_bytes=100
)


def successor(*, batches, batch_bytes=10):
    """The object after one with `batches` batches, with its first batch at 0 ms."""
    sealed = OpenObject()
    for offset in range(batches):
        sealed.add("events-0", memoryview(bytes(batch_bytes)), offset, offset, 1, 0, 0)
    return send(COALESCING.next_object(sealed), 1)


def send(object_, batches):
    for _ in range(batches):
        offset = object_.batch_count
        object_.add("events-0", memoryview(bytes(10)), offset, offset, 1, 0, 0)
    return object_


def test_object_after_a_large_one_waits_briefly_for_as_many_batches():
    object_ = successor(batches=16)
    assert COALESCING.decide(object_, 0, 0, PutBudget(None)) == Wait(2)
    assert COALESCING.decide(object_, 1, 0, PutBudget(None)) == Wait(2)
    assert not COALESCING.should_decide_now(send(object_, 12))
    assert COALESCING.should_decide_now(send(object_, 1)), "14 of 16 are enough"
    assert COALESCING.decide(object_, 1, 0, PutBudget(None)) == Seal(SealReason.IDLE)


def test_missing_batches_are_awaited_only_once():
    object_ = send(successor(batches=16), 3)
    assert COALESCING.decide(object_, 2, 0, PutBudget(None)) == Seal(SealReason.IDLE)
    assert COALESCING.next_object(object_).expected_batches == 0, "it was small"


def test_object_after_a_small_one_does_not_wait():
    assert COALESCING.decide(successor(batches=9), 0, 0, PutBudget(None)) == Seal(SealReason.IDLE)


def test_due_object_does_not_coalesce():
    object_ = successor(batches=16)
    object_.flush_requested = True
    assert COALESCING.decide(object_, 0, 0, PutBudget(None)) == Seal(SealReason.EXPLICIT)
    hasty = replace(COALESCING, flush_interval_ms=1)
    assert hasty.decide(successor(batches=16), 0, 0, PutBudget(None)) == Wait(1)


# --- the budget -----------------------------------------------------------------------------------


def test_large_quiet_object_is_sealed_over_budget():
    policy = replace(POLICY, quiet_bytes=50, quiet_ms=25)
    budget = spent()
    small, worth_it = opened(size_bytes=49), opened(size_bytes=50)
    assert policy.decide(worth_it, 24, 0, budget) == Wait(25)
    assert policy.decide(worth_it, 25, 0, budget) == Seal(SealReason.QUIET)
    assert policy.decide(small, 25, 0, budget) == Wait(50), "it may grow meanwhile"
    worth_it.add("b", memoryview(bytes(1)), 0, 0, 1, 0, 20)
    assert policy.decide(worth_it, 25, 0, budget) == Wait(45), "something has just come"
    assert policy.decide(worth_it, 45, policy.idle_uploads_max, budget) == Wait(
        policy.flush_interval_ms
    ), "there is no slot for it"


def test_unlimited_budget_is_never_exhausted():
    budget = PutBudget(None)
    for _ in range(1000):
        assert budget.ready_at(0) == 0
        budget.consume(0)


def test_full_budget_allows_its_burst_and_then_its_rate():
    budget = PutBudget(2.0, burst=3)
    for _ in range(3):
        assert budget.ready_at(1000) == 1000
        budget.consume(1000)
    assert budget.ready_at(1000) == budget.ready_at(1499) == budget.ready_at(1500) == 1500
    budget.consume(1500)
    assert budget.ready_at(1500) == 2000


def test_pause_fills_at_most_one_bucket():
    budget = PutBudget(2.0, burst=3)
    budget.consume(0)
    puts = 0
    while budget.ready_at(1_000_000) == 1_000_000:
        budget.consume(1_000_000)
        puts += 1
    assert puts == 3


def test_forced_puts_cause_a_debt_of_at_most_one_bucket():
    budget = PutBudget(2.0, burst=3)
    for _ in range(100):
        budget.consume(0)
    # Three tokens of debt, and the one that is waited for.
    assert budget.ready_at(0) == 2000


def test_token_is_available_at_the_predicted_time():
    budget = PutBudget(3.0, burst=2)
    now_ms = 0
    for _ in range(50):
        budget.consume(now_ms)
        ready_ms = budget.ready_at(now_ms)
        assert budget.ready_at(ready_ms) == ready_ms
        assert ready_ms == now_ms or budget.ready_at(ready_ms - 1) == ready_ms
        now_ms = ready_ms


# --- simulation -----------------------------------------------------------------------------------


class Broker:
    """Simulates arrivals, uploads and timers, like `WalWriter` without I/O."""

    def __init__(self, policy, budget, uploads_ms):
        self.policy, self.budget = policy, budget
        self.uploads_ms = itertools.cycle(uploads_ms)
        self.uploads = []
        self.object_ = OpenObject()
        self.end_offset = 0
        self.sealed = []
        """Time, reason, and since when the object could have been sealed at all."""
        self.slot_free_ms = 0

    def run(self, arrivals):
        """Run arrivals of (time, bytes, records) until nothing is left."""
        arrivals = list(arrivals)
        now_ms = 0
        while True:
            decision = self.policy.decide(self.object_, now_ms, len(self.uploads), self.budget)
            if isinstance(decision, Seal):
                self._seal(decision.reason, now_ms)
                continue
            times = [t for t in (decision.until_ms, *self.uploads[:1]) if t is not None]
            times += [arrival[0] for arrival in arrivals[:1]]
            if not times:
                assert self.object_.is_empty, "Something waits for an event that never comes."
                return
            now_ms = max(now_ms, min(times))
            self._pass(now_ms, arrivals)

    def _pass(self, now_ms, arrivals):
        while self.uploads and self.uploads[0] <= now_ms:
            if len(self.uploads) == self.policy.uploads_max:
                self.slot_free_ms = now_ms
            heapq.heappop(self.uploads)
        if arrivals and arrivals[0][0] <= now_ms:
            _, size_bytes, count = arrivals.pop(0)
            last_offset = self.end_offset + count - 1
            batch = memoryview(bytes(size_bytes))
            self.object_.add("p", batch, self.end_offset, last_offset, count, 0, now_ms)
            self.end_offset = last_offset + 1

    def _seal(self, reason, now_ms):
        self.sealed.append((now_ms, reason, max(self.slot_free_ms, self.object_.opened_ms)))
        assert now_ms <= max(
            self.object_.opened_ms + self.policy.flush_interval_ms, self.slot_free_ms
        )
        self.budget.consume(now_ms)
        heapq.heappush(self.uploads, now_ms + next(self.uploads_ms))
        assert len(self.uploads) <= self.policy.uploads_max
        self.object_ = self.policy.next_object(self.object_)


arrivals = st.lists(
    st.tuples(st.integers(0, 3000), st.integers(1, 1200), st.integers(1, 12)), max_size=60
).map(sorted)
uploads_ms = st.lists(st.integers(1, 900), min_size=1, max_size=10)
policy = st.builds(
    SealPolicy,
    flush_bytes=st.just(1000),
    flush_messages=st.just(10),
    flush_interval_ms=st.integers(1, 500),
    uploads_max=st.integers(2, 8),
    idle_uploads_max=st.integers(1, 2),
    coalesce_ms=st.integers(0, 100),
    coalesce_bytes=st.integers(0, 2000),
)


@given(policy, arrivals, uploads_ms, st.sampled_from([0.5, 3.0, 10.0, 70.0]), st.integers(1, 5))
def test_puts_and_waiting_times_are_bounded(policy, arrivals, uploads_ms, rate, burst):
    """`Broker` asserts the waiting time; this checks the number of PUTs in every interval."""
    broker = Broker(policy, PutBudget(rate, burst), uploads_ms)
    broker.run(arrivals)
    assert broker.end_offset == sum(count for _, _, count in arrivals)
    idle_ms = [now_ms for now_ms, reason, _ in broker.sealed if reason is SealReason.IDLE]
    for first, last in itertools.combinations(range(len(idle_ms)), 2):
        stretch_seconds = (idle_ms[last] - idle_ms[first]) / 1000
        assert last - first + 1 <= burst + rate * stretch_seconds + 1e-6


@given(arrivals, uploads_ms)
def test_without_a_budget_uploads_are_serialized_and_batch(arrivals, uploads_ms):
    policy = SealPolicy(
        flush_bytes=10**6,
        flush_messages=10**6,
        flush_interval_ms=10**6,
        uploads_max=8,
        idle_uploads_max=1,
    )
    broker = Broker(policy, PutBudget(None), uploads_ms)
    broker.run(arrivals)
    assert {reason for _, reason, _ in broker.sealed} <= {SealReason.IDLE}
    times_ms = [now_ms for now_ms, _, _ in broker.sealed]
    for (before_ms, after_ms), upload_ms in zip(
        itertools.pairwise(times_ms), itertools.cycle(uploads_ms), strict=False
    ):
        assert after_ms - before_ms >= upload_ms
