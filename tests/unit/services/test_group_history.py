"""The checker of groups finds every kind of bug that it is there for."""

import pytest

from services.group_history import Life, committed, is_caught_up, owned, problems
from services.member_events import (
    AnyEvent,
    Assigned,
    Committed,
    Ended,
    Lost,
    Read,
    Refused,
    Revoked,
    event_of,
    line_of,
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
KILLED = Life("killed", [assigned(1), read(0, 5), done(5), read(5, 8)], killed_ms=2)


def judge(*lives: Life | list[AnyEvent]) -> list[str]:
    named = [
        life if isinstance(life, Life) else Life(f"member-{number}", life)
        for number, life in enumerate(lives)
    ]
    return problems(named, ENDS, batch_records_max=BATCH)


@pytest.mark.parametrize(
    "lives",
    [
        [FIRST_HALF, SECOND_HALF],
        [[assigned(1), read(0, 10), done(10)]],
        [[assigned(1), read(0, 3), read(3, 10), done(10)]],
        [KILLED, SECOND_HALF],
        # It was killed between its commit and the word about it.
        [Life("killed", [*FIRST_HALF, assigned(3), read(5, 10)], killed_ms=4)],
        [[*FIRST_HALF[:3], read(5, 8), Refused(error="no"), revoked(2)], SECOND_HALF],
        # What comes back after a refusal is read a second time by the same member.
        [
            [
                assigned(1),
                read(0, 5),
                Refused(error="no"),
                revoked(2),
                assigned(3),
                read(0, 10),
                done(10),
            ]
        ],
    ],
)
def test_what_is_right_passes(lives):
    assert judge(*lives) == []


@pytest.mark.parametrize(
    ("lives", "complaint"),
    [
        ([FIRST_HALF], "5 records from 5 were never read"),
        ([FIRST_HALF, [assigned(2), read(6, 10), done(10)]], "1 records from 5 were never read"),
        ([FIRST_HALF, [assigned(1), *SECOND_HALF[1:]]], "was given partition 0 while"),
        ([[read(0, 10), done(10)]], "which it did not have"),
        ([[*FIRST_HALF, read(5, 10), done(10)]], "which it did not have"),
        ([FIRST_HALF, [assigned(2), read(4, 10), done(10)]], "was read and committed by"),
        ([[assigned(1), read(0, 10), done(9)]], "left 1 records uncommitted"),
        ([FIRST_HALF, [assigned(2), read(5, 10)]], "left 5 records uncommitted"),
        ([[*FIRST_HALF[:3], read(5, 8), revoked(2)], SECOND_HALF], "left 3 records uncommitted"),
        (
            [
                Life("killed", [assigned(1), read(0, 6)], killed_ms=2),
                [assigned(3), read(0, 10), done(10)],
            ],
            "left 6 records uncommitted",
        ),
    ],
)
def test_what_is_wrong_is_found(lives, complaint):
    assert any(complaint in problem for problem in judge(*lives)), judge(*lives)


def test_a_member_that_was_killed_owns_nothing_any_more():
    assert judge(KILLED, [assigned(1), *SECOND_HALF[1:]]) != []
    assert judge(KILLED, SECOND_HALF) == []


def test_ownership_follows_what_is_given_and_taken():
    events: list[AnyEvent] = [Assigned(partitions=(0, 1)), Assigned(partitions=(2, 3))]
    assert owned(events) == {0, 1, 2, 3}
    assert owned([*events, Revoked(partitions=(1,)), Lost(partitions=(2,))]) == {0, 3}
    assert owned([*events, Ended()]) == set()


def test_the_highest_commit_counts_whoever_made_it():
    assert committed([Life("a", [done(7)]), Life("b", [done(5)])]) == {0: 7}


@pytest.mark.parametrize(
    "event", [*SECOND_HALF, revoked(1), Lost(partitions=()), Refused(error="")]
)
def test_an_event_survives_the_way_through_a_line(event):
    assert event_of(line_of(event)) == event


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([assigned(1), read(0, 10), done(10)], True),
        ([assigned(1), read(0, 10), done(9)], False),
        ([assigned(1), read(0, 10), Refused(error="stale")], True),
        ([assigned(1), read(0, 9), Refused(error="stale")], False),
        ([assigned(1), Refused(error="stale"), read(0, 10), done(5)], False),
        ([], False),
    ],
)
def test_everything_is_caught_up_but_what_was_refused(events, expected):
    assert is_caught_up([Life("member", events)], ENDS) is expected


def test_a_member_may_read_something_of_its_own_again_where_that_is_allowed():
    lives = [Life("one", [assigned(1), read(0, 3), read(0, 10), done(10)])]
    assert problems(lives, ENDS, batch_records_max=BATCH) != []
    assert problems(lives, ENDS, batch_records_max=BATCH, may_rewind=True) == []
