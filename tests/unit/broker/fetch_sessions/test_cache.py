"""The fetch session cache: lookup, errors and eviction."""

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafscale.broker.fetch_sessions.cache import EVICTION_MS, FetchSessionCache
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.fetch import (
    FetchedPartition,
    FetchRequest,
    PartitionToFetch,
    TopicToFetch,
    TopicToForget,
)

NEW, NONE = 0, -1


def new_cache(**bounds):
    return FetchSessionCache(itertools.count(1).__next__, **bounds)


def request(*indexes, session_id=0, epoch=NEW, forget=()):
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[TopicToFetch("a", partitions=[PartitionToFetch(i) for i in indexes])],
        topics_to_forget=[TopicToForget("a", partitions=list(forget))],
    )


def fetch(sessions, request, *, version=12, now_ms=0, high_watermark=10, records=()):
    """Serve a request; all partitions are equal, except that some have records."""
    context = sessions.begin(request, version, now_ms)
    results = [
        FetchedPartition(
            partition.request.index,
            high_watermark=high_watermark,
            log_start_offset=0,
            records=[memoryview(b"batch")] if partition.request.index in records else None,
        )
        for partition in context.partitions
    ]
    return context.build_response(results, now_ms)


def indexes_of(response):
    return [partition.index for topic in response.topics for partition in topic.partitions]


def begin(sessions, count=1, now_ms=0):
    """The id of a new session with `count` partitions."""
    return fetch(sessions, request(*range(count)), now_ms=now_ms).session_id


# --- lifecycle ------------------------------------------------------------------------------------


def test_session_starts_full_and_continues_incrementally():
    sessions = new_cache()
    first = fetch(sessions, request(0, 1, 2))
    assert (first.session_id, indexes_of(first)) == (1, [0, 1, 2])
    second = fetch(sessions, request(session_id=1, epoch=1), records={1})
    assert (second.session_id, indexes_of(second)) == (1, [1])
    third = fetch(sessions, request(session_id=1, epoch=2))
    assert (third.session_id, third.error_code, indexes_of(third)) == (1, 0, [])
    fourth = fetch(sessions, request(3, session_id=1, epoch=3, forget=[0]))
    assert indexes_of(fourth) == [3]
    fifth = fetch(sessions, request(session_id=1, epoch=4), high_watermark=11)
    assert indexes_of(fifth) == [2, 1, 3]


def test_sessionless_responses_are_complete():
    sessions = new_cache()
    for _ in range(2):
        response = fetch(sessions, request(0, 1, epoch=NONE))
        assert (response.session_id, indexes_of(response)) == (0, [0, 1])
    assert len(sessions) == 0


def test_versions_without_sessions_get_none():
    sessions = new_cache()
    bare = FetchRequest(topics=[TopicToFetch("a", partitions=[PartitionToFetch(0)])])
    assert indexes_of(fetch(sessions, bare, version=4)) == [0]
    assert len(sessions) == 0


def test_final_epoch_ends_the_session():
    sessions = new_cache()
    session_id = begin(sessions)
    assert fetch(sessions, request(0, session_id=session_id, epoch=NONE)).session_id == 0
    assert len(sessions) == 0
    assert sessions.partitions_count == 0


def test_new_session_replaces_the_old_one():
    sessions = new_cache()
    session_id = begin(sessions)
    assert fetch(sessions, request(0, session_id=session_id)).session_id != session_id
    assert len(sessions) == 1


def test_session_without_partitions_ends():
    sessions = new_cache()
    session_id = begin(sessions)
    response = fetch(sessions, request(session_id=session_id, epoch=1, forget=[0]))
    assert (response.session_id, response.error_code) == (0, 0)
    assert len(sessions) == 0


def test_empty_full_fetch_creates_no_session():
    sessions = new_cache()
    assert fetch(sessions, request()).session_id == 0
    assert len(sessions) == 0


def test_unknown_session_is_not_found():
    response = fetch(new_cache(), request(session_id=5, epoch=1))
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert response.session_id == 0


@pytest.mark.parametrize("epoch", [2, 3, -5, 2**31 - 1])
def test_wrong_epoch_is_refused_and_keeps_the_session(epoch):
    sessions = new_cache()
    session_id = begin(sessions)
    response = fetch(sessions, request(session_id=session_id, epoch=epoch))
    assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert fetch(sessions, request(session_id=session_id, epoch=1)).error_code == 0


@pytest.mark.parametrize(("first", "then"), [(12, 13), (13, 12)])
def test_session_does_not_mix_topic_names_and_ids(first, then):
    sessions = new_cache()
    session_id = fetch(sessions, request(0), version=first).session_id
    response = fetch(sessions, request(session_id=session_id, epoch=1), version=then)
    assert response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_response_after_the_next_request_is_an_epoch_error():
    """The client has sent the next request before this response."""
    sessions = new_cache()
    session_id = begin(sessions)
    waiting = sessions.begin(request(session_id=session_id, epoch=1), 12, 0)
    fetch(sessions, request(1, session_id=session_id, epoch=2))
    response = waiting.build_response([FetchedPartition(0)], 0)
    assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_session_ids_in_use_are_not_reused():
    ids = iter([7, 7, 7, 8])
    sessions = FetchSessionCache(ids.__next__)
    assert [begin(sessions), begin(sessions)] == [7, 8]


# --- eviction -------------------------------------------------------------------------------------


def test_full_cache_of_young_sessions_evicts_none():
    sessions = new_cache(slots_max=2)
    begin(sessions)
    begin(sessions)
    response = fetch(sessions, request(*range(100)), now_ms=EVICTION_MS)
    assert response.session_id == 0
    assert indexes_of(response) == list(range(100))


def test_longest_idle_session_is_evicted():
    sessions = new_cache(slots_max=2)
    large, small = begin(sessions, 100), begin(sessions, 1)
    fetch(sessions, request(session_id=small, epoch=1), now_ms=10)
    new_id = begin(sessions, 1, now_ms=EVICTION_MS + 1)
    assert new_id
    evicted = fetch(sessions, request(session_id=large, epoch=1), now_ms=EVICTION_MS + 2)
    assert evicted.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert fetch(sessions, request(session_id=small, epoch=2)).error_code == 0


@pytest.mark.parametrize(("size", "is_evicted"), [(4, False), (5, True), (6, True)])
def test_smallest_session_is_evicted_for_one_that_is_no_smaller(size, is_evicted):
    sessions = new_cache(slots_max=2)
    large, small = begin(sessions, 8), begin(sessions, 5)
    now_ms = EVICTION_MS + 1
    for session_id in (large, small):
        fetch(sessions, request(session_id=session_id, epoch=1), now_ms=now_ms - 1)
    assert bool(begin(sessions, size, now_ms=now_ms)) is is_evicted
    again = fetch(sessions, request(session_id=small, epoch=2), now_ms=now_ms)
    assert (again.error_code != 0) is is_evicted
    assert fetch(sessions, request(session_id=large, epoch=2), now_ms=now_ms).error_code == 0


def test_partitions_of_all_sessions_are_bounded():
    sessions = new_cache(partitions_count_max=10)
    first = begin(sessions, 6)
    assert begin(sessions, 5) == 0
    second = begin(sessions, 4)
    assert second
    grown = fetch(sessions, request(7, session_id=first, epoch=1))
    assert grown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(sessions), sessions.partitions_count) == (1, 4)


# --- a client with a session knows as much as one without -----------------------------------------


class Client(RuleBasedStateMachine):
    """A consumer that fetches some partitions in a session.

    Whatever happens to partitions, subscriptions and the session, it knows the current state.
    """

    def __init__(self):
        super().__init__()
        self.sessions = new_cache()
        self.high_watermarks = dict.fromkeys(range(5), 0)
        self.errors = dict.fromkeys(range(5), 0)
        self.subscribed = {0}
        self.in_session = set()
        self.session_id, self.epoch = 0, NEW
        self.known = {}

    @rule(index=st.integers(0, 4))
    def append(self, index):
        self.high_watermarks[index] += 1

    @rule(index=st.integers(0, 4), error=st.sampled_from([0, 6]))
    def break_or_mend(self, index, error):
        self.errors[index] = error

    @rule(indexes=st.sets(st.integers(0, 4), min_size=1))
    def subscribe(self, indexes):
        self.subscribed = indexes

    @precondition(lambda self: self.session_id)
    @rule()
    def lose_the_session(self):
        self.sessions._remove(self.session_id)

    @rule()
    def fetch(self):
        if self.epoch == NEW:
            self.in_session, self.known = set(), {}
        response = self._fetch()
        if response.error_code:
            assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self.session_id, self.epoch = 0, NEW
            self.in_session, self.known = set(), {}
            response = self._fetch()
        self.session_id = response.session_id
        self.epoch += 1
        self.in_session = set(self.subscribed)
        for topic in response.topics:
            for partition in topic.partitions:
                self.known[partition.index] = (partition.high_watermark, partition.error_code)
        for index in self.subscribed:
            assert self.known[index] == (self.high_watermarks[index], self.errors[index])

    def _fetch(self):
        changes = self.subscribed - self.in_session
        forgotten = self.in_session - self.subscribed
        for index in forgotten:
            del self.known[index]
        context = self.sessions.begin(
            request(*changes, session_id=self.session_id, epoch=self.epoch, forget=forgotten), 12, 0
        )
        return context.build_response(
            [
                FetchedPartition(
                    partition.request.index,
                    error_code=self.errors[partition.request.index],
                    high_watermark=self.high_watermarks[partition.request.index],
                    log_start_offset=0,
                )
                for partition in context.partitions
            ],
            0,
        )

    @invariant()
    def partitions_are_counted_right(self):
        total = sum(len(session) for session in self.sessions._sessions.values())
        assert self.sessions.partitions_count == total


TestClient = Client.TestCase
TestClient.settings = settings(max_examples=60, stateful_step_count=30)
