"""The checker of histories finds every kind of bug that it is there for."""

import pytest

from services.history import History, Place, Sent, changes, problems

RECORDS = [Sent("a", number) for number in range(4)]


@pytest.fixture
def history() -> History:
    return History(
        sent=dict.fromkeys(RECORDS, 0),
        acknowledged={record: Place(0, record.number) for record in RECORDS[:3]},
        idempotent={"a"},
    )


def log(*numbers: int):
    return {0: [(offset, Sent("a", number)) for offset, number in enumerate(numbers)]}


@pytest.mark.parametrize("numbers", [(0, 1, 2), (0, 1, 2, 3)])
def test_what_is_right_passes_whether_the_unacknowledged_is_there_or_not(history, numbers):
    assert problems(history, log(*numbers)) == []


@pytest.mark.parametrize(
    ("numbers", "complaint"),
    [
        ((0, 1), "is lost"),
        ((0, 2, 1), "where"),
        ((1, 0, 2), "comes after a younger one"),
        ((0, 1, 2, 2), "is there again"),
        ((0, 0, 1, 2), "where"),
        ((0, 1, 2, 9), "was never sent there"),
        ((0, 1, 3, 2), "where"),
    ],
)
def test_what_is_wrong_is_found(history, numbers, complaint):
    assert any(complaint in problem for problem in problems(history, log(*numbers)))


def test_a_gap_in_the_offsets_is_found(history):
    history.acknowledged.clear()
    gap = {0: [(0, Sent("a", 0)), (2, Sent("a", 1))]}
    assert problems(history, gap) == ["partition 0 has offset 2 where 1 belongs"]


def test_a_producer_that_is_not_idempotent_may_repeat_but_not_reorder(history):
    history.idempotent.clear()
    history.acknowledged.clear()
    assert problems(history, log(0, 1, 0, 1, 2)) == []
    assert problems(history, log(0, 2, 1))


def test_a_record_in_another_partition_is_found(history):
    history.acknowledged.clear()
    assert problems(history, {1: [(0, Sent("a", 0))]})


def test_what_was_read_must_be_read_again():
    assert changes(log(0, 1), log(0, 1, 2)) == []
    assert changes(log(0, 1), log(0))
    assert changes(log(0, 1), log(0, 2, 1))
