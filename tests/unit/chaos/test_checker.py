"""The checker finds in every history that contradicts itself what is wrong, and only there."""

import pytest

from chaos.anomalies import Name
from chaos.checker import check
from unit.chaos.tale import Tale


@pytest.fixture
def tale() -> Tale:
    return Tale()


def names(tale: Tale) -> list[Name]:
    return [anomaly.name for anomaly in check(tale.events)]


# --- good ones ------------------------------------------------------------------------------------


def test_nothing_at_all_is_fine(tale):
    assert check(tale.events) == []
    assert check([]) == []


def test_all_is_well_when_everything_is_read_where_it_was_put(tale):
    tale.written("a", "b", "c")
    tale.read("reader", (0, "a"), (1, "b"))
    tale.read("reader", (2, "c"))
    tale.read("final", (0, "a"), (1, "b"), (2, "c"))
    assert check(tale.events) == []


def test_a_send_in_doubt_may_be_in_the_log_or_not(tale):
    tale.sent("careful", "info", "a")
    tale.invoke("plain", "b")
    tale.sent("careful", "info", "absent")
    tale.invoke("hasty", "absent too")
    tale.read("final", (0, "a"), (1, "b"))
    assert check(tale.events) == []


def test_a_failed_send_that_nobody_reads_is_fine(tale):
    tale.sent("careful", "fail", "a")
    tale.written("b")
    tale.read("final", (0, "b"))
    assert check(tale.events) == []


def test_only_an_idempotent_producer_is_kept_from_repeating(tale):
    tale.invoke("plain", "a")
    tale.done("plain", "ok", "a", 1)
    tale.read("final", (0, "a"), (1, "a"))
    assert check(tale.events) == []


def test_a_hasty_producer_may_be_out_of_order(tale):
    tale.invoke("hasty", "a")
    tale.invoke("hasty", "b")
    tale.done("hasty", "ok", "b", 0)
    tale.done("hasty", "ok", "a", 1)
    tale.read("final", (0, "b"), (1, "a"))
    assert check(tale.events) == []


def test_a_reader_may_go_anywhere_after_a_move(tale):
    tale.written("a", "b", "c")
    tale.read("reader", (2, "c"))
    tale.moved("reader")
    tale.read("reader", (0, "a"))
    tale.read("final", (0, "a"), (1, "b"), (2, "c"))
    assert check(tale.events) == []


def test_members_of_a_group_share_the_work_and_may_read_again(tale):
    tale.written("a", "b", "c")
    tale.read("first", (0, "a"), (1, "b"))
    tale.committed("first", 1)
    tale.moved("second")
    tale.read("second", (1, "b"), (2, "c"))
    tale.committed("second", 3)
    tale.commit_read(3)
    tale.read("final", (0, "a"), (1, "b"), (2, "c"))
    assert check(tale.events) == []


def test_partitions_do_not_mix(tale):
    tale.written("a")
    tale.invoke("careful", "b", "topic/1")
    tale.done("careful", "ok", "b", 0, "topic/1")
    tale.read("final", (0, "a"))
    tale.read("final", (0, "b"), partition="topic/1")
    assert check(tale.events) == []


# --- what was acknowledged ------------------------------------------------------------------------


def test_a_lost_write(tale):
    tale.written("a", "b", "c")
    tale.read("reader", (2, "c"))
    tale.read("final", (0, "a"))
    tale.moved("final")
    tale.read("final", (2, "c"))
    [anomaly] = check(tale.events)
    assert anomaly.name is Name.LOST
    assert str(anomaly) == (
        "lost write in topic/0: b was acknowledged at 1 to careful and never read,"
        " though others were up to 2"
    )


def test_an_acknowledged_write_that_was_never_read(tale):
    tale.written("a", "b")
    tale.read("final", (0, "a"))
    assert names(tale) == [Name.UNSEEN]


def test_a_log_of_which_nothing_was_read(tale):
    tale.written("a")
    assert names(tale) == [Name.UNSEEN]


def test_a_write_that_was_read_once_and_is_gone(tale):
    tale.sent("careful", "info", "a")
    tale.sent("careful", "info", "b")
    tale.read("reader", (0, "a"), (1, "b"))
    tale.read("final", (0, "a"))
    assert names(tale) == [Name.UNSEEN]


def test_a_duplicate_of_an_idempotent_producer(tale):
    tale.written("a")
    tale.read("final", (0, "a"), (1, "a"))
    assert names(tale) == [Name.DUPLICATE]


def test_two_readers_that_find_different_values(tale):
    tale.sent("careful", "info", "a")
    tale.sent("plain", "info", "b")
    tale.read("reader", (0, "b"))
    tale.read("final", (0, "a"))
    assert names(tale) == [Name.INCONSISTENT]


def test_two_values_that_were_acknowledged_at_one_offset(tale):
    tale.invoke("careful", "a")
    tale.invoke("plain", "b")
    tale.done("careful", "ok", "a", 0)
    tale.done("plain", "ok", "b", 0)
    tale.read("final", (0, "a"))
    assert names(tale) == [Name.INCONSISTENT, Name.LOST]


def test_a_value_that_is_not_where_its_producer_was_told(tale):
    tale.invoke("plain", "a")
    tale.invoke("careful", "b")
    tale.done("plain", "ok", "a", 1)
    tale.done("careful", "ok", "b", 2)
    tale.read("final", (0, "a"), (2, "b"))
    assert names(tale) == [Name.INCONSISTENT, Name.SKIP_INSIDE]


# --- what was not ---------------------------------------------------------------------------------


def test_an_aborted_read(tale):
    tale.sent("careful", "fail", "a")
    tale.read("final", (0, "a"))
    assert names(tale) == [Name.ABORTED]


def test_a_value_that_nobody_sent(tale):
    tale.read("final", (0, "a"))
    assert names(tale) == [Name.NEVER_SENT]


def test_a_value_in_another_partition_than_it_was_sent_to(tale):
    tale.sent("careful", "info", "a")
    tale.read("final", (0, "a"), partition="topic/1")
    assert names(tale) == [Name.NEVER_SENT]


# --- readers --------------------------------------------------------------------------------------


def finally_all(tale: Tale, *values: str) -> None:
    tale.read("final", *enumerate(values))


def test_a_skip_from_one_poll_to_the_next(tale):
    tale.written("a", "b", "c", "d")
    tale.read("reader", (0, "a"))
    tale.read("reader", (3, "d"))
    finally_all(tale, "a", "b", "c", "d")
    [anomaly] = check(tale.events)
    assert anomaly.name is Name.SKIP
    assert anomaly.evidence == "reader went from 0 to 3 from one poll to the next, past 1-2"


def test_a_skip_inside_a_poll(tale):
    tale.written("a", "b", "c")
    tale.read("reader", (0, "a"), (2, "c"))
    finally_all(tale, "a", "b", "c")
    assert names(tale) == [Name.SKIP_INSIDE]


def test_going_back_from_one_poll_to_the_next(tale):
    tale.written("a", "b")
    tale.read("reader", (0, "a"), (1, "b"))
    tale.read("reader", (0, "a"), (1, "b"))
    finally_all(tale, "a", "b")
    assert names(tale) == [Name.BACKWARDS]


def test_going_back_inside_a_poll(tale):
    tale.written("a", "b")
    tale.read("reader", (1, "b"), (0, "a"))
    finally_all(tale, "a", "b")
    assert names(tale) == [Name.BACKWARDS_INSIDE]


def test_a_hole(tale):
    tale.written("a")
    tale.sent("careful", "ok", "b", 2)
    tale.read("final", (0, "a"), (2, "b"))
    assert names(tale) == [Name.HOLE]


def test_a_log_that_does_not_begin_at_its_start(tale):
    tale.sent("careful", "ok", "a", 1)
    tale.read("final", (1, "a"))
    assert names(tale) == [Name.HOLE]


def test_a_group_that_skips(tale):
    tale.written("a", "b", "c")
    tale.read("first", (0, "a"))
    tale.moved("second")
    tale.read("second", (2, "c"))
    finally_all(tale, "a", "b", "c")
    [anomaly] = check(tale.events)
    assert anomaly.name is Name.GROUP_SKIP
    assert anomaly.evidence == "group has read up to 2, but not 1"


def test_a_client_that_cannot_go_on(tale):
    tale.failed("careful", "fatal error")
    assert names(tale) == [Name.FAILURE]


# --- order and time -------------------------------------------------------------------------------


@pytest.mark.parametrize("process", ["careful", "plain"])
def test_acknowledged_offsets_that_go_backwards(tale, process):
    tale.invoke(process, "a")
    tale.invoke(process, "b")
    tale.done(process, "ok", "a", 1)
    tale.done(process, "ok", "b", 0)
    finally_all(tale, "b", "a")
    assert names(tale) == [Name.DISORDER]


def test_an_idempotent_producer_keeps_its_order_even_where_it_is_in_doubt(tale):
    tale.invoke("careful", "a")
    tale.invoke("careful", "b")
    tale.done("careful", "info", "a")
    finally_all(tale, "b", "a")
    assert names(tale) == [Name.DISORDER]


def test_an_offset_below_one_that_was_acknowledged_before(tale):
    tale.sent("plain", "ok", "a", 1)
    tale.sent("careful", "ok", "b", 0)
    finally_all(tale, "b", "a")
    assert names(tale) == [Name.STALE_SEND]


def test_a_log_that_is_said_to_end_too_early(tale):
    tale.written("a", "b")
    tale.end_read(1)
    finally_all(tale, "a", "b")
    assert names(tale) == [Name.STALE_END]


def test_an_end_that_was_asked_for_before_the_last_acknowledgement(tale):
    tale.written("a")
    asked_ns = tale.later()
    tale.written("b", start=1)
    tale.end_read(1, began_ns=asked_ns)
    finally_all(tale, "a", "b")
    assert check(tale.events) == []


def test_a_commit_that_is_forgotten(tale):
    tale.written("a", "b")
    tale.read("first", (0, "a"), (1, "b"))
    tale.committed("first", 2)
    tale.commit_read(1)
    finally_all(tale, "a", "b")
    assert names(tale) == [Name.STALE_COMMIT]


@pytest.mark.parametrize("kind", ["invoke", "info", "fail"])
def test_a_commit_that_was_not_acknowledged_may_be_forgotten(tale, kind):
    tale.written("a", "b")
    tale.read("first", (0, "a"), (1, "b"))
    tale.committed("first", 2, kind)
    tale.commit_read(-1)
    finally_all(tale, "a", "b")
    assert check(tale.events) == []
