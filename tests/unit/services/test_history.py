"""The history checker reports every kind of violation."""

import pytest

from services.history import History, Position, Sent, changes, problems

RECORDS = [Sent("a", number) for number in range(4)]


@pytest.fixture
def history() -> History:
    return History(
        sent=dict.fromkeys(RECORDS, 0),
        acknowledged={record: Position(0, record.number) for record in RECORDS[:3]},
        idempotent={"a"},
    )


def log(*numbers: int):
    return {0: [(offset, Sent("a", number)) for offset, number in enumerate(numbers)]}


@pytest.mark.parametrize("numbers", [(0, 1, 2), (0, 1, 2, 3)])
def test_valid_log_passes_with_or_without_unacknowledged_records(history, numbers):
    assert problems(history, log(*numbers)) == []


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((0, 1), "is lost"),
        ((0, 2, 1), "where"),
        ((1, 0, 2), "comes after a later one"),
        ((0, 1, 2, 2), "is duplicated"),
        ((0, 0, 1, 2), "where"),
        ((0, 1, 2, 9), "was never sent there"),
        ((0, 1, 3, 2), "where"),
    ],
)
def test_violation_is_reported(history, numbers, message):
    assert any(message in problem for problem in problems(history, log(*numbers)))


def test_offset_gap_is_reported(history):
    history.acknowledged.clear()
    gap = {0: [(0, Sent("a", 0)), (2, Sent("a", 1))]}
    assert problems(history, gap) == ["partition 0 has offset 2 instead of 1"]


def test_producer_without_idempotence_may_repeat_and_reorder(history):
    history.acknowledged.clear()
    assert problems(history, log(0, 1, 0, 1, 2))
    assert problems(history, log(0, 2, 1))
    history.idempotent.clear()
    assert problems(history, log(0, 1, 0, 1, 2)) == []
    assert problems(history, log(0, 2, 1)) == []


def test_record_in_another_partition_is_reported(history):
    history.acknowledged.clear()
    assert problems(history, {1: [(0, Sent("a", 0))]})


def test_record_that_disappears_is_reported():
    assert changes(log(0, 1), log(0, 1, 2)) == []
    assert changes(log(0, 1), log(0))
    assert changes(log(0, 1), log(0, 2, 1))
