"""The checker reports every kind of anomaly, and nothing in correct histories."""

import pytest

from chaos.anomalies import Name
from chaos.checker import check
from unit.chaos.history_builder import HistoryBuilder


@pytest.fixture
def builder() -> HistoryBuilder:
    return HistoryBuilder()


def names(builder: HistoryBuilder) -> list[Name]:
    return [anomaly.name for anomaly in check(builder.events)]


# --- correct histories ----------------------------------------------------------------------------


def test_empty_history_is_correct(builder):
    assert check(builder.events) == []
    assert check([]) == []


def test_records_read_at_their_acknowledged_offsets_are_correct(builder):
    builder.acknowledged("a", "b", "c")
    builder.read("reader", (0, "a"), (1, "b"))
    builder.read("reader", (2, "c"))
    builder.read("final", (0, "a"), (1, "b"), (2, "c"))
    assert check(builder.events) == []


def test_send_with_unknown_outcome_may_be_in_the_log_or_not(builder):
    builder.sent("idempotent", "info", "a")
    builder.invoke("plain", "b")
    builder.sent("idempotent", "info", "absent")
    builder.invoke("reordering", "absent too")
    builder.read("final", (0, "a"), (1, "b"))
    assert check(builder.events) == []


def test_failed_send_that_is_not_read_is_correct(builder):
    builder.sent("idempotent", "fail", "a")
    builder.acknowledged("b")
    builder.read("final", (0, "b"))
    assert check(builder.events) == []


def test_producer_without_idempotence_may_repeat_records(builder):
    builder.invoke("plain", "a")
    builder.done("plain", "ok", "a", 1)
    builder.read("final", (0, "a"), (1, "a"))
    assert check(builder.events) == []


def test_producer_with_several_requests_in_flight_may_reorder(builder):
    builder.invoke("reordering", "a")
    builder.invoke("reordering", "b")
    builder.done("reordering", "ok", "b", 0)
    builder.done("reordering", "ok", "a", 1)
    builder.read("final", (0, "b"), (1, "a"))
    assert check(builder.events) == []


def test_reader_may_continue_anywhere_after_a_seek(builder):
    builder.acknowledged("a", "b", "c")
    builder.read("reader", (2, "c"))
    builder.moved("reader")
    builder.read("reader", (0, "a"))
    builder.read("final", (0, "a"), (1, "b"), (2, "c"))
    assert check(builder.events) == []


def test_group_members_may_read_records_again(builder):
    builder.acknowledged("a", "b", "c")
    builder.read("first", (0, "a"), (1, "b"))
    builder.committed("first", 1)
    builder.moved("second")
    builder.read("second", (1, "b"), (2, "c"))
    builder.committed("second", 3)
    builder.commit_read(3)
    builder.read("final", (0, "a"), (1, "b"), (2, "c"))
    assert check(builder.events) == []


def test_partitions_are_checked_independently(builder):
    builder.acknowledged("a")
    builder.invoke("idempotent", "b", "topic/1")
    builder.done("idempotent", "ok", "b", 0, "topic/1")
    builder.read("final", (0, "a"))
    builder.read("final", (0, "b"), partition="topic/1")
    assert check(builder.events) == []


# --- acknowledged records -------------------------------------------------------------------------


def test_lost_write_is_reported(builder):
    builder.acknowledged("a", "b", "c")
    builder.read("reader", (2, "c"))
    builder.read("final", (0, "a"))
    builder.moved("final")
    builder.read("final", (2, "c"))
    [anomaly] = check(builder.events)
    assert anomaly.name is Name.LOST
    assert str(anomaly) == (
        "lost write in topic/0: b was acknowledged at 1 to idempotent and never read,"
        " though others were up to 2"
    )


def test_acknowledged_write_that_was_never_read_is_reported(builder):
    builder.acknowledged("a", "b")
    builder.read("final", (0, "a"))
    assert names(builder) == [Name.UNSEEN]


def test_log_without_reads_is_reported(builder):
    builder.acknowledged("a")
    assert names(builder) == [Name.UNSEEN]


def test_write_that_disappeared_is_reported(builder):
    builder.sent("idempotent", "info", "a")
    builder.sent("idempotent", "info", "b")
    builder.read("reader", (0, "a"), (1, "b"))
    builder.read("final", (0, "a"))
    assert names(builder) == [Name.UNSEEN]


def test_duplicate_of_an_idempotent_producer_is_reported(builder):
    builder.acknowledged("a")
    builder.read("final", (0, "a"), (1, "a"))
    assert names(builder) == [Name.DUPLICATE]


def test_different_values_at_one_offset_are_reported(builder):
    builder.sent("idempotent", "info", "a")
    builder.sent("plain", "info", "b")
    builder.read("reader", (0, "b"))
    builder.read("final", (0, "a"))
    assert names(builder) == [Name.INCONSISTENT]


def test_two_acknowledgements_of_one_offset_are_reported(builder):
    builder.invoke("idempotent", "a")
    builder.invoke("plain", "b")
    builder.done("idempotent", "ok", "a", 0)
    builder.done("plain", "ok", "b", 0)
    builder.read("final", (0, "a"))
    assert names(builder) == [Name.INCONSISTENT, Name.LOST]


def test_value_at_another_than_the_acknowledged_offset_is_reported(builder):
    builder.invoke("plain", "a")
    builder.invoke("idempotent", "b")
    builder.done("plain", "ok", "a", 1)
    builder.done("idempotent", "ok", "b", 2)
    builder.read("final", (0, "a"), (2, "b"))
    assert names(builder) == [Name.INCONSISTENT, Name.SKIP_INSIDE]


# --- other records --------------------------------------------------------------------------------


def test_read_of_a_failed_send_is_reported(builder):
    builder.sent("idempotent", "fail", "a")
    builder.read("final", (0, "a"))
    assert names(builder) == [Name.ABORTED]


def test_value_that_was_never_sent_is_reported(builder):
    builder.read("final", (0, "a"))
    assert names(builder) == [Name.NEVER_SENT]


def test_value_in_another_partition_is_reported(builder):
    builder.sent("idempotent", "info", "a")
    builder.read("final", (0, "a"), partition="topic/1")
    assert names(builder) == [Name.NEVER_SENT]


# --- deleted topics -------------------------------------------------------------------------------


def test_last_records_of_a_deleted_topic_need_not_be_read(builder):
    builder.acknowledged("a", "b")
    builder.read("reader", (0, "a"))
    builder.topic_deleted()
    assert check(builder.events) == []


def test_lost_write_of_a_deleted_topic_is_reported(builder):
    builder.acknowledged("a", "b", "c")
    builder.read("reader", (0, "a"), (2, "c"))
    builder.topic_deleted()
    assert set(names(builder)) == {Name.LOST, Name.SKIP_INSIDE}


# --- readers --------------------------------------------------------------------------------------


def read_finally(builder: HistoryBuilder, *values: str) -> None:
    builder.read("final", *enumerate(values))


def test_skip_between_polls_is_reported(builder):
    builder.acknowledged("a", "b", "c", "d")
    builder.read("reader", (0, "a"))
    builder.read("reader", (3, "d"))
    read_finally(builder, "a", "b", "c", "d")
    [anomaly] = check(builder.events)
    assert anomaly.name is Name.SKIP
    assert anomaly.evidence == "reader went from 0 to 3 from one poll to the next, past 1-2"


def test_skip_within_a_poll_is_reported(builder):
    builder.acknowledged("a", "b", "c")
    builder.read("reader", (0, "a"), (2, "c"))
    read_finally(builder, "a", "b", "c")
    assert names(builder) == [Name.SKIP_INSIDE]


def test_backward_step_between_polls_is_reported(builder):
    builder.acknowledged("a", "b")
    builder.read("reader", (0, "a"), (1, "b"))
    builder.read("reader", (0, "a"), (1, "b"))
    read_finally(builder, "a", "b")
    assert names(builder) == [Name.BACKWARDS]


def test_backward_step_within_a_poll_is_reported(builder):
    builder.acknowledged("a", "b")
    builder.read("reader", (1, "b"), (0, "a"))
    read_finally(builder, "a", "b")
    assert names(builder) == [Name.BACKWARDS_INSIDE]


def test_hole_in_the_log_is_reported(builder):
    builder.acknowledged("a")
    builder.sent("idempotent", "ok", "b", 2)
    builder.read("final", (0, "a"), (2, "b"))
    assert names(builder) == [Name.HOLE]


def test_log_that_starts_above_0_is_reported(builder):
    builder.sent("idempotent", "ok", "a", 1)
    builder.read("final", (1, "a"))
    assert names(builder) == [Name.HOLE]


def test_skip_by_a_group_is_reported(builder):
    builder.acknowledged("a", "b", "c")
    builder.read("first", (0, "a"))
    builder.moved("second")
    builder.read("second", (2, "c"))
    read_finally(builder, "a", "b", "c")
    [anomaly] = check(builder.events)
    assert anomaly.name is Name.GROUP_SKIP
    assert anomaly.evidence == "group has read up to 2, but not 1"


def test_client_failure_is_reported(builder):
    builder.failed("idempotent", "fatal error")
    assert names(builder) == [Name.FAILURE]


# --- order and time -------------------------------------------------------------------------------


@pytest.mark.parametrize("process", ["idempotent", "plain"])
def test_decreasing_acknowledged_offsets_are_reported(builder, process):
    builder.invoke(process, "a")
    builder.invoke(process, "b")
    builder.done(process, "ok", "a", 1)
    builder.done(process, "ok", "b", 0)
    read_finally(builder, "b", "a")
    assert names(builder) == [Name.DISORDER]


def test_idempotent_producer_keeps_its_order_with_unknown_outcomes(builder):
    builder.invoke("idempotent", "a")
    builder.invoke("idempotent", "b")
    builder.done("idempotent", "info", "a")
    read_finally(builder, "b", "a")
    assert names(builder) == [Name.DISORDER]


def test_offset_below_an_earlier_acknowledged_one_is_reported(builder):
    builder.sent("plain", "ok", "a", 1)
    builder.sent("idempotent", "ok", "b", 0)
    read_finally(builder, "b", "a")
    assert names(builder) == [Name.STALE_SEND]


def test_stale_end_offset_is_reported(builder):
    builder.acknowledged("a", "b")
    builder.end_read(1)
    read_finally(builder, "a", "b")
    assert names(builder) == [Name.STALE_END]


def test_end_offset_read_before_the_last_acknowledgement_is_correct(builder):
    builder.acknowledged("a")
    asked_ns = builder.later()
    builder.acknowledged("b", start=1)
    builder.end_read(1, began_ns=asked_ns)
    read_finally(builder, "a", "b")
    assert check(builder.events) == []


def test_lost_commit_is_reported(builder):
    builder.acknowledged("a", "b")
    builder.read("first", (0, "a"), (1, "b"))
    builder.committed("first", 2)
    builder.commit_read(1)
    read_finally(builder, "a", "b")
    assert names(builder) == [Name.STALE_COMMIT]


@pytest.mark.parametrize("kind", ["invoke", "info", "fail"])
def test_unacknowledged_commit_may_be_lost(builder, kind):
    builder.acknowledged("a", "b")
    builder.read("first", (0, "a"), (1, "b"))
    builder.committed("first", 2, kind)
    builder.commit_read(-1)
    read_finally(builder, "a", "b")
    assert check(builder.events) == []
