"""The checks of group histories find every violation, and accept correct histories."""

import pytest

from services.group_history import MemberHistory, committed, is_caught_up, owned, problems
from services.member_events import (
    AnyEvent,
    Assigned,
    CommitRejected,
    Committed,
    Ended,
    Lost,
    Read,
    Revoked,
    decode_event,
    encode_event,
)

ENDS = {0: 10}
BATCH = 5


def assigned(at_ms: int) -> Assigned:
    return Assigned(at_ms=at_ms, partitions=(0,))


def revoked(at_ms: int) -> Revoked:
    return Revoked(at_ms=at_ms, partitions=(0,))


def read(first: int, end: int) -> Read:
    return Read(partition=0, first=first, end=end)


def done(offset: int) -> Committed:
    return Committed(partition=0, offset=offset)


FIRST_HALF = [assigned(1), read(0, 5), done(5), revoked(2)]
SECOND_HALF = [assigned(2), read(5, 10), done(10), Ended(at_ms=9)]
KILLED = MemberHistory("killed", [assigned(1), read(0, 5), done(5), read(5, 8)], killed_ms=2)


def find_problems(*histories: MemberHistory | list[AnyEvent]) -> list[str]:
    named = [
        history
        if isinstance(history, MemberHistory)
        else MemberHistory(f"member-{number}", history)
        for number, history in enumerate(histories)
    ]
    return problems(named, ENDS, batch_records_max=BATCH)


@pytest.mark.parametrize(
    "histories",
    [
        [FIRST_HALF, SECOND_HALF],
        [[assigned(1), read(0, 10), done(10)]],
        [[assigned(1), read(0, 3), read(3, 10), done(10)]],
        [KILLED, SECOND_HALF],
        # Killed after its commit, before it reported the commit.
        [MemberHistory("killed", [*FIRST_HALF, assigned(3), read(5, 10)], killed_ms=4)],
        [[*FIRST_HALF[:3], read(5, 8), CommitRejected(error="no"), revoked(2)], SECOND_HALF],
        # After a rejected commit, the same member reads the records again.
        [
            [
                assigned(1),
                read(0, 5),
                CommitRejected(error="no"),
                revoked(2),
                assigned(3),
                read(0, 10),
                done(10),
            ]
        ],
    ],
)
def test_problems_accepts_correct_histories(histories):
    assert find_problems(*histories) == []


@pytest.mark.parametrize(
    ("histories", "expected_problem"),
    [
        ([FIRST_HALF], "5 records from 5 were never read"),
        ([FIRST_HALF, [assigned(2), read(6, 10), done(10)]], "1 records from 5 were never read"),
        ([FIRST_HALF, [assigned(1), *SECOND_HALF[1:]]], "was assigned partition 0 while"),
        ([[read(0, 10), done(10)]], "which it did not own"),
        ([[*FIRST_HALF, read(5, 10), done(10)]], "which it did not own"),
        ([FIRST_HALF, [assigned(2), read(4, 10), done(10)]], "was read and committed by"),
        ([[assigned(1), read(0, 10), done(9)]], "left 1 records uncommitted"),
        ([FIRST_HALF, [assigned(2), read(5, 10)]], "left 5 records uncommitted"),
        ([[*FIRST_HALF[:3], read(5, 8), revoked(2)], SECOND_HALF], "left 3 records uncommitted"),
        (
            [
                MemberHistory("killed", [assigned(1), read(0, 6)], killed_ms=2),
                [assigned(3), read(0, 10), done(10)],
            ],
            "left 6 records uncommitted",
        ),
    ],
)
def test_problems_reports_violations(histories, expected_problem):
    assert any(expected_problem in problem for problem in find_problems(*histories)), find_problems(
        *histories
    )


def test_killed_member_owns_no_partitions():
    assert find_problems(KILLED, [assigned(1), *SECOND_HALF[1:]]) != []
    assert find_problems(KILLED, SECOND_HALF) == []


def test_owned_follows_assignments_and_revocations():
    events: list[AnyEvent] = [Assigned(partitions=(0, 1)), Assigned(partitions=(2, 3))]
    assert owned(events) == {0, 1, 2, 3}
    assert owned([*events, Revoked(partitions=(1,)), Lost(partitions=(2,))]) == {0, 3}
    assert owned([*events, Ended()]) == set()


def test_committed_is_the_highest_of_all_members():
    assert committed([MemberHistory("a", [done(7)]), MemberHistory("b", [done(5)])]) == {0: 7}


@pytest.mark.parametrize(
    "event", [*SECOND_HALF, revoked(1), Lost(partitions=()), CommitRejected(error="")]
)
def test_events_survive_encoding(event):
    assert decode_event(encode_event(event)) == event


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([assigned(1), read(0, 10), done(10)], True),
        ([assigned(1), read(0, 10), done(9)], False),
        ([assigned(1), read(0, 10), CommitRejected(error="stale")], True),
        ([assigned(1), read(0, 9), CommitRejected(error="stale")], False),
        ([assigned(1), CommitRejected(error="stale"), read(0, 10), done(5)], False),
        ([], False),
    ],
)
def test_is_caught_up_ignores_rejected_commits(events, expected):
    assert is_caught_up([MemberHistory("member", events)], ENDS) is expected


def test_rereads_by_the_same_member_need_may_rewind():
    histories = [MemberHistory("one", [assigned(1), read(0, 3), read(0, 10), done(10)])]
    assert problems(histories, ENDS, batch_records_max=BATCH) != []
    assert problems(histories, ENDS, batch_records_max=BATCH, may_rewind=True) == []
