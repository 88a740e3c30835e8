"""How requests find their sessions, and which sessions make room when there is none."""

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafscale.broker.fetch_sessions.cache import EVICTION_MS, FetchSessions
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.fetch import (
    FetchedPartition,
    FetchRequest,
    PartitionToFetch,
    TopicToFetch,
    TopicToForget,
)

NEW, NONE = 0, -1


def sessions_of(**bounds):
    return FetchSessions(itertools.count(1).__next__, **bounds)


def request(*indexes, session_id=0, epoch=NEW, forget=()):
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[TopicToFetch("a", partitions=[PartitionToFetch(i) for i in indexes])],
        topics_to_forget=[TopicToForget("a", partitions=list(forget))],
    )


def fetch(sessions, request, *, version=12, now_ms=0, high_watermark=10, records=()):
    """Serve a request from partitions that all look alike, but for those with records."""
    context = sessions.begin(request, version, now_ms)
    results = [
        FetchedPartition(
            wanted.request.index,
            high_watermark=high_watermark,
            log_start_offset=0,
            records=[memoryview(b"batch")] if wanted.request.index in records else None,
        )
        for wanted in context.wanted
    ]
    return context.answer(results, now_ms)


def answered(response):
    return [partition.index for topic in response.topics for partition in topic.partitions]


def begin(sessions, count=1, now_ms=0):
    """The id of a new session of so many partitions."""
    return fetch(sessions, request(*range(count)), now_ms=now_ms).session_id


# --- the life of a session ------------------------------------------------------------------------


def test_a_session_begins_with_everything_and_goes_on_with_changes():
    sessions = sessions_of()
    first = fetch(sessions, request(0, 1, 2))
    assert (first.session_id, answered(first)) == (1, [0, 1, 2])
    second = fetch(sessions, request(session_id=1, epoch=1), records={1})
    assert (second.session_id, answered(second)) == (1, [1])
    third = fetch(sessions, request(session_id=1, epoch=2))
    assert (third.session_id, third.error_code, answered(third)) == (1, 0, [])
    fourth = fetch(sessions, request(3, session_id=1, epoch=3, forget=[0]))
    assert answered(fourth) == [3]
    fifth = fetch(sessions, request(session_id=1, epoch=4), high_watermark=11)
    assert answered(fifth) == [2, 1, 3]


def test_without_a_session_every_answer_is_complete():
    sessions = sessions_of()
    for _ in range(2):
        response = fetch(sessions, request(0, 1, epoch=NONE))
        assert (response.session_id, answered(response)) == (0, [0, 1])
    assert len(sessions) == 0


def test_versions_without_sessions_get_none():
    sessions = sessions_of()
    bare = FetchRequest(topics=[TopicToFetch("a", partitions=[PartitionToFetch(0)])])
    assert answered(fetch(sessions, bare, version=4)) == [0]
    assert len(sessions) == 0


def test_a_final_fetch_ends_its_session():
    sessions = sessions_of()
    session_id = begin(sessions)
    assert fetch(sessions, request(0, session_id=session_id, epoch=NONE)).session_id == 0
    assert len(sessions) == 0
    assert sessions.partitions_count == 0


def test_a_client_that_begins_anew_gives_up_its_old_session():
    sessions = sessions_of()
    session_id = begin(sessions)
    assert fetch(sessions, request(0, session_id=session_id)).session_id != session_id
    assert len(sessions) == 1


def test_a_session_that_wants_nothing_any_more_ends():
    sessions = sessions_of()
    session_id = begin(sessions)
    response = fetch(sessions, request(session_id=session_id, epoch=1, forget=[0]))
    assert (response.session_id, response.error_code) == (0, 0)
    assert len(sessions) == 0


def test_a_fetch_of_nothing_begins_no_session():
    sessions = sessions_of()
    assert fetch(sessions, request()).session_id == 0
    assert len(sessions) == 0


def test_a_session_that_is_not_there_is_said_to_be_gone():
    response = fetch(sessions_of(), request(session_id=5, epoch=1))
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert response.session_id == 0


@pytest.mark.parametrize("epoch", [2, 3, -5, 2**31 - 1])
def test_a_request_out_of_order_is_refused_and_the_session_stays(epoch):
    sessions = sessions_of()
    session_id = begin(sessions)
    response = fetch(sessions, request(session_id=session_id, epoch=epoch))
    assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert fetch(sessions, request(session_id=session_id, epoch=1)).error_code == 0


@pytest.mark.parametrize(("first", "then"), [(12, 13), (13, 12)])
def test_names_and_ids_do_not_mix_in_a_session(first, then):
    sessions = sessions_of()
    session_id = fetch(sessions, request(0), version=first).session_id
    response = fetch(sessions, request(session_id=session_id, epoch=1), version=then)
    assert response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_an_answer_that_was_overtaken_is_refused():
    """A client that sends the next request before this one is answered has lost count."""
    sessions = sessions_of()
    session_id = begin(sessions)
    waiting = sessions.begin(request(session_id=session_id, epoch=1), 12, 0)
    fetch(sessions, request(1, session_id=session_id, epoch=2))
    response = waiting.answer([FetchedPartition(0)], 0)
    assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_ids_in_use_are_not_given_again():
    ids = iter([7, 7, 7, 8])
    sessions = FetchSessions(ids.__next__)
    assert [begin(sessions), begin(sessions)] == [7, 8]


# --- room -----------------------------------------------------------------------------------------


def test_a_full_cache_of_young_sessions_makes_no_room():
    sessions = sessions_of(slots_max=2)
    begin(sessions)
    begin(sessions)
    response = fetch(sessions, request(*range(100)), now_ms=EVICTION_MS)
    assert response.session_id == 0
    assert answered(response) == list(range(100))


def test_the_session_that_was_idle_for_longest_makes_room_whatever_its_size():
    sessions = sessions_of(slots_max=2)
    large, small = begin(sessions, 100), begin(sessions, 1)
    fetch(sessions, request(session_id=small, epoch=1), now_ms=10)
    newcomer = begin(sessions, 1, now_ms=EVICTION_MS + 1)
    assert newcomer
    gone = fetch(sessions, request(session_id=large, epoch=1), now_ms=EVICTION_MS + 2)
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert fetch(sessions, request(session_id=small, epoch=2)).error_code == 0
    assert sessions.evictions_count == 1


@pytest.mark.parametrize(("size", "has_room"), [(4, False), (5, True), (6, True)])
def test_the_smallest_session_makes_room_for_one_that_is_no_smaller(size, has_room):
    sessions = sessions_of(slots_max=2)
    large, small = begin(sessions, 8), begin(sessions, 5)
    now_ms = EVICTION_MS + 1
    for session_id in (large, small):
        fetch(sessions, request(session_id=session_id, epoch=1), now_ms=now_ms - 1)
    assert bool(begin(sessions, size, now_ms=now_ms)) is has_room
    again = fetch(sessions, request(session_id=small, epoch=2), now_ms=now_ms)
    assert (again.error_code != 0) is has_room
    assert fetch(sessions, request(session_id=large, epoch=2), now_ms=now_ms).error_code == 0


def test_sessions_hold_no_more_partitions_than_they_may():
    sessions = sessions_of(partitions_count_max=10)
    first = begin(sessions, 6)
    assert begin(sessions, 5) == 0
    second = begin(sessions, 4)
    assert second
    grown = fetch(sessions, request(7, session_id=first, epoch=1))
    assert grown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(sessions), sessions.partitions_count) == (1, 4)


# --- a client in a session knows as much as one without -------------------------------------------


class Client(RuleBasedStateMachine):
    """A consumer that follows some partitions by session, and looks at them directly as well.

    Whatever happens to partitions, subscriptions and the session itself, what it has been told is
    what there is.
    """

    def __init__(self):
        super().__init__()
        self.sessions = sessions_of()
        self.watermarks = dict.fromkeys(range(5), 0)
        self.errors = dict.fromkeys(range(5), 0)
        self.subscribed = {0}
        self.in_session = set()
        self.session_id, self.epoch = 0, NEW
        self.known = {}

    @rule(index=st.integers(0, 4))
    def append(self, index):
        self.watermarks[index] += 1

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
        response = self._ask()
        if response.error_code:
            assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self.session_id, self.epoch = 0, NEW
            self.in_session, self.known = set(), {}
            response = self._ask()
        self.session_id = response.session_id
        self.epoch += 1
        self.in_session = set(self.subscribed)
        for topic in response.topics:
            for partition in topic.partitions:
                self.known[partition.index] = (partition.high_watermark, partition.error_code)
        for index in self.subscribed:
            assert self.known[index] == (self.watermarks[index], self.errors[index])

    def _ask(self):
        changes = self.subscribed - self.in_session
        forgotten = self.in_session - self.subscribed
        for index in forgotten:
            del self.known[index]
        context = self.sessions.begin(
            request(*changes, session_id=self.session_id, epoch=self.epoch, forget=forgotten), 12, 0
        )
        return context.answer(
            [
                FetchedPartition(
                    wanted.request.index,
                    error_code=self.errors[wanted.request.index],
                    high_watermark=self.watermarks[wanted.request.index],
                    log_start_offset=0,
                )
                for wanted in context.wanted
            ],
            0,
        )

    @invariant()
    def partitions_are_counted_right(self):
        held = sum(len(session) for session in self.sessions._sessions.values())
        assert self.sessions.partitions_count == held


TestClient = Client.TestCase
TestClient.settings = settings(max_examples=60, stateful_step_count=30)
