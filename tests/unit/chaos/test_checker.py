"""The checker finds in every history that contradicts itself what is wrong, and only there."""

import pytest

from chaos.anomalies import Name
from chaos.checker import check
from unit.chaos.history_builder import HistoryBuilder


@pytest.fixture
def builder() -> HistoryBuilder:
    return HistoryBuilder()


def names(builder: HistoryBuilder) -> list[Name]:
    return [anomaly.name for anomaly in check(builder.events)]


# --- good ones ------------------------------------------------------------------------------------


def test_nothing_at_all_is_fine(builder):
    assert check(builder.events) == []
    assert check([]) == []


def test_all_is_well_when_everything_is_read_where_it_was_put(builder):
    builder.encode_value("a", "b", "c")
    builder.read("reader", (0, "a"), (1, "b"))
    builder.read("reader", (2, "c"))
    builder.read("final", (0, "a"), (1, "b"), (2, "c"))
    assert check(builder.events) == []


def test_a_send_in_doubt_may_be_in_the_log_or_not(builder):
    builder.sent("careful", "info", "a")
    builder.invoke("plain", "b")
    builder.sent("careful", "info", "absent")
    builder.invoke("hasty", "absent too")
    builder.read("final", (0, "a"), (1, "b"))
    assert check(builder.events) == []


def test_a_failed_send_that_nobody_reads_is_fine(builder):
    builder.sent("careful", "fail", "a")
    builder.encode_value("b")
    builder.read("final", (0, "b"))
    assert check(builder.events) == []


def test_only_an_idempotent_producer_is_kept_from_repeating(builder):
    builder.invoke("plain", "a")
    builder.done("plain", "ok", "a", 1)
    builder.read("final", (0, "a"), (1, "a"))
    assert check(builder.events) == []


def test_a_hasty_producer_may_be_out_of_order(builder):
    builder.invoke("hasty", "a")
    builder.invoke("hasty", "b")
    builder.done("hasty", "ok", "b", 0)
    builder.done("hasty", "ok", "a", 1)
    builder.read("final", (0, "b"), (1, "a"))
    assert check(builder.events) == []


def test_a_reader_may_go_anywhere_after_a_move(builder):
    builder.encode_value("a", "b", "c")
    builder.read("reader", (2, "c"))
    builder.moved("reader")
    builder.read("reader", (0, "a"))
    builder.read("final", (0, "a"), (1, "b"), (2, "c"))
    assert check(builder.events) == []


def test_members_of_a_group_share_the_work_and_may_read_again(builder):
    builder.encode_value("a", "b", "c")
    builder.read("first", (0, "a"), (1, "b"))
    builder.committed("first", 1)
    builder.moved("second")
    builder.read("second", (1, "b"), (2, "c"))
    builder.committed("second", 3)
    builder.commit_read(3)
    builder.read("final", (0, "a"), (1, "b"), (2, "c"))
    assert check(builder.events) == []


def test_partitions_do_not_mix(builder):
    builder.encode_value("a")
    builder.invoke("careful", "b", "topic/1")
    builder.done("careful", "ok", "b", 0, "topic/1")
    builder.read("final", (0, "a"))
    builder.read("final", (0, "b"), partition="topic/1")
    assert check(builder.events) == []


# --- what was acknowledged ------------------------------------------------------------------------


def test_a_lost_write(builder):
    builder.encode_value("a", "b", "c")
    builder.read("reader", (2, "c"))
    builder.read("final", (0, "a"))
    builder.moved("final")
    builder.read("final", (2, "c"))
    [anomaly] = check(builder.events)
    assert anomaly.name is Name.LOST
    assert str(anomaly) == (
        "lost write in topic/0: b was acknowledged at 1 to careful and never read,"
        " though others were up to 2"
    )


def test_an_acknowledged_write_that_was_never_read(builder):
    builder.encode_value("a", "b")
    builder.read("final", (0, "a"))
    assert names(builder) == [Name.UNSEEN]


def test_a_log_of_which_nothing_was_read(builder):
    builder.encode_value("a")
    assert names(builder) == [Name.UNSEEN]


def test_a_write_that_was_read_once_and_is_gone(builder):
    builder.sent("careful", "info", "a")
    builder.sent("careful", "info", "b")
    builder.read("reader", (0, "a"), (1, "b"))
    builder.read("final", (0, "a"))
    assert names(builder) == [Name.UNSEEN]


def test_a_duplicate_of_an_idempotent_producer(builder):
    builder.encode_value("a")
    builder.read("final", (0, "a"), (1, "a"))
    assert names(builder) == [Name.DUPLICATE]


def test_two_readers_that_find_different_values(builder):
    builder.sent("careful", "info", "a")
    builder.sent("plain", "info", "b")
    builder.read("reader", (0, "b"))
    builder.read("final", (0, "a"))
    assert names(builder) == [Name.INCONSISTENT]


def test_two_values_that_were_acknowledged_at_one_offset(builder):
    builder.invoke("careful", "a")
    builder.invoke("plain", "b")
    builder.done("careful", "ok", "a", 0)
    builder.done("plain", "ok", "b", 0)
    builder.read("final", (0, "a"))
    assert names(builder) == [Name.INCONSISTENT, Name.LOST]


def test_a_value_that_is_not_where_its_producer_was_told(builder):
    builder.invoke("plain", "a")
    builder.invoke("careful", "b")
    builder.done("plain", "ok", "a", 1)
    builder.done("careful", "ok", "b", 2)
    builder.read("final", (0, "a"), (2, "b"))
    assert names(builder) == [Name.INCONSISTENT, Name.SKIP_INSIDE]


# --- what was not ---------------------------------------------------------------------------------


def test_an_aborted_read(builder):
    builder.sent("careful", "fail", "a")
    builder.read("final", (0, "a"))
    assert names(builder) == [Name.ABORTED]


def test_a_value_that_nobody_sent(builder):
    builder.read("final", (0, "a"))
    assert names(builder) == [Name.NEVER_SENT]


def test_a_value_in_another_partition_than_it_was_sent_to(builder):
    builder.sent("careful", "info", "a")
    builder.read("final", (0, "a"), partition="topic/1")
    assert names(builder) == [Name.NEVER_SENT]


# --- readers --------------------------------------------------------------------------------------


def finally_all(builder: HistoryBuilder, *values: str) -> None:
    builder.read("final", *enumerate(values))


def test_a_skip_from_one_poll_to_the_next(builder):
    builder.encode_value("a", "b", "c", "d")
    builder.read("reader", (0, "a"))
    builder.read("reader", (3, "d"))
    finally_all(builder, "a", "b", "c", "d")
    [anomaly] = check(builder.events)
    assert anomaly.name is Name.SKIP
    assert anomaly.evidence == "reader went from 0 to 3 from one poll to the next, past 1-2"


def test_a_skip_inside_a_poll(builder):
    builder.encode_value("a", "b", "c")
    builder.read("reader", (0, "a"), (2, "c"))
    finally_all(builder, "a", "b", "c")
    assert names(builder) == [Name.SKIP_INSIDE]


def test_going_back_from_one_poll_to_the_next(builder):
    builder.encode_value("a", "b")
    builder.read("reader", (0, "a"), (1, "b"))
    builder.read("reader", (0, "a"), (1, "b"))
    finally_all(builder, "a", "b")
    assert names(builder) == [Name.BACKWARDS]


def test_going_back_inside_a_poll(builder):
    builder.encode_value("a", "b")
    builder.read("reader", (1, "b"), (0, "a"))
    finally_all(builder, "a", "b")
    assert names(builder) == [Name.BACKWARDS_INSIDE]


def test_a_hole(builder):
    builder.encode_value("a")
    builder.sent("careful", "ok", "b", 2)
    builder.read("final", (0, "a"), (2, "b"))
    assert names(builder) == [Name.HOLE]


def test_a_log_that_does_not_begin_at_its_start(builder):
    builder.sent("careful", "ok", "a", 1)
    builder.read("final", (1, "a"))
    assert names(builder) == [Name.HOLE]


def test_a_group_that_skips(builder):
    builder.encode_value("a", "b", "c")
    builder.read("first", (0, "a"))
    builder.moved("second")
    builder.read("second", (2, "c"))
    finally_all(builder, "a", "b", "c")
    [anomaly] = check(builder.events)
    assert anomaly.name is Name.GROUP_SKIP
    assert anomaly.evidence == "group has read up to 2, but not 1"


def test_a_client_that_cannot_go_on(builder):
    builder.failed("careful", "fatal error")
    assert names(builder) == [Name.FAILURE]


# --- order and time -------------------------------------------------------------------------------


@pytest.mark.parametrize("process", ["careful", "plain"])
def test_acknowledged_offsets_that_go_backwards(builder, process):
    builder.invoke(process, "a")
    builder.invoke(process, "b")
    builder.done(process, "ok", "a", 1)
    builder.done(process, "ok", "b", 0)
    finally_all(builder, "b", "a")
    assert names(builder) == [Name.DISORDER]


def test_an_idempotent_producer_keeps_its_order_even_where_it_is_in_doubt(builder):
    builder.invoke("careful", "a")
    builder.invoke("careful", "b")
    builder.done("careful", "info", "a")
    finally_all(builder, "b", "a")
    assert names(builder) == [Name.DISORDER]


def test_an_offset_below_one_that_was_acknowledged_before(builder):
    builder.sent("plain", "ok", "a", 1)
    builder.sent("careful", "ok", "b", 0)
    finally_all(builder, "b", "a")
    assert names(builder) == [Name.STALE_SEND]


def test_a_log_that_is_said_to_end_too_early(builder):
    builder.encode_value("a", "b")
    builder.end_read(1)
    finally_all(builder, "a", "b")
    assert names(builder) == [Name.STALE_END]


def test_an_end_that_was_asked_for_before_the_last_acknowledgement(builder):
    builder.encode_value("a")
    asked_ns = builder.later()
    builder.encode_value("b", start=1)
    builder.end_read(1, began_ns=asked_ns)
    finally_all(builder, "a", "b")
    assert check(builder.events) == []


def test_a_commit_that_is_forgotten(builder):
    builder.encode_value("a", "b")
    builder.read("first", (0, "a"), (1, "b"))
    builder.committed("first", 2)
    builder.commit_read(1)
    finally_all(builder, "a", "b")
    assert names(builder) == [Name.STALE_COMMIT]


@pytest.mark.parametrize("kind", ["invoke", "info", "fail"])
def test_a_commit_that_was_not_acknowledged_may_be_forgotten(builder, kind):
    builder.encode_value("a", "b")
    builder.read("first", (0, "a"), (1, "b"))
    builder.committed("first", 2, kind)
    builder.commit_read(-1)
    finally_all(builder, "a", "b")
    assert check(builder.events) == []
