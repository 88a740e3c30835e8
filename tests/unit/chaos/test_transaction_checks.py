"""The checker reports what transactions must not do, and nothing that they may."""

import pytest

from chaos.anomalies import Name
from chaos.checker import check_transactions
from chaos.history import AnyEvent, Consumer, EndRead, Failure, Kind, Poll, Send, Transaction

ONE, TWO = "topic/0", "topic/1"
STEP_NS = 1000


class Builder:
    """A history; every event is later than the one before."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.events: list[AnyEvent] = [Consumer("final", 0, is_final=True)]

    def later(self) -> int:
        self.now_ns += STEP_NS
        return self.now_ns

    def begin(self, name: str, *values: tuple[str, str, int]) -> None:
        """Begin a transaction with acknowledged records: partition, number and offset."""
        self.events.append(Transaction("writer", self.later(), name, "begin", "ok"))
        for partition, number, offset in values:
            value = f"{name}:{number}"
            self.events.append(Send("writer", self.later(), "invoke", partition, value))
            if offset >= 0:
                self.events.append(Send("writer", self.later(), "ok", partition, value, offset))

    def commit(self, name: str, *kinds: Kind) -> None:
        for kind in kinds or ("invoke", "ok"):
            self.events.append(Transaction("writer", self.later(), name, "commit", kind))

    def abort(self, name: str) -> None:
        self.events.append(Transaction("writer", self.later(), name, "abort", "ok"))

    def read(self, process: str, partition: str, *records: tuple[int, str]) -> None:
        self.events.append(Poll(process, self.later(), {partition: list(records)}))

    def stable(self, offset: int, began_ns: int | None = None) -> None:
        began_ns = self.later() if began_ns is None else began_ns
        self.events.append(EndRead("reader", self.later(), began_ns, ONE, offset))

    @property
    def names(self) -> list[Name]:
        return [anomaly.name for anomaly in check_transactions(self.events)]


@pytest.fixture
def history() -> Builder:
    """A transaction with a record in each partition has begun, and a second one was aborted."""
    builder = Builder()
    builder.begin("w:0", (ONE, "0", 0), (TWO, "1", 0))
    builder.begin("w:1", (ONE, "0", 1))
    builder.abort("w:1")
    return builder


def test_committed_records_are_read(history):
    history.commit("w:0")
    history.read("reader", ONE, (0, "w:0:0"))
    history.read("final", ONE, (0, "w:0:0"))
    history.read("final", TWO, (0, "w:0:1"))
    assert history.names == []


def test_unknown_outcome_may_be_either(history):
    history.commit("w:0", "invoke")
    assert history.names == []
    history.read("final", ONE, (0, "w:0:0"))
    history.read("final", TWO, (0, "w:0:1"))
    assert history.names == []


def test_unknown_outcome_may_not_be_both(history):
    history.commit("w:0", "invoke")
    history.read("final", ONE, (0, "w:0:0"))
    assert history.names == [Name.SPLIT]


def test_lost_record(history):
    history.commit("w:0")
    history.read("final", ONE, (0, "w:0:0"))
    assert history.names == [Name.LOST]


@pytest.mark.parametrize("reader", ["reader", "final"])
def test_aborted_record(history, reader):
    history.read(reader, ONE, (1, "w:1:0"))
    assert history.names == [Name.ABORTED]


def test_record_that_was_left_in_an_open_transaction(history):
    history.read("final", ONE, (0, "w:0:0"))
    assert history.names == [Name.ABORTED]


def test_transaction_whose_commit_was_refused(history):
    history.commit("w:0", "invoke")
    history.abort("w:0")
    history.read("final", ONE, (0, "w:0:0"))
    assert history.names == [Name.ABORTED]


def test_record_before_its_commit(history):
    history.read("reader", ONE, (0, "w:0:0"))
    history.commit("w:0")
    history.read("final", ONE, (0, "w:0:0"))
    history.read("final", TWO, (0, "w:0:1"))
    assert history.names == [Name.EARLY]


def test_record_at_other_offsets(history):
    history.commit("w:0")
    history.read("final", ONE, (2, "w:0:0"), (3, "w:0:0"))
    history.read("final", TWO, (0, "w:0:1"))
    assert set(history.names) == {Name.DUPLICATE, Name.INCONSISTENT}


def test_record_that_was_never_sent(history):
    history.read("final", ONE, (0, "w:7:0"))
    assert history.names == [Name.NEVER_SENT]


def test_order_within_a_transaction(history):
    history.begin("w:2", (ONE, "0", -1), (ONE, "1", -1))
    history.commit("w:2")
    history.read("final", ONE, (3, "w:2:1"), (4, "w:2:0"))
    assert history.names == [Name.DISORDER]


def test_reader_that_skips_a_committed_record(history):
    history.commit("w:0")
    history.begin("w:2", (ONE, "0", 3))
    history.commit("w:2")
    history.read("reader", ONE, (3, "w:2:0"))
    history.read("final", ONE, (0, "w:0:0"), (3, "w:2:0"))
    history.read("final", TWO, (0, "w:0:1"))
    assert history.names == [Name.SKIP]


def test_reader_that_goes_back(history):
    history.commit("w:0")
    history.read("reader", ONE, (0, "w:0:0"))
    history.read("reader", ONE, (0, "w:0:0"))
    history.read("final", ONE, (0, "w:0:0"))
    history.read("final", TWO, (0, "w:0:1"))
    assert history.names == [Name.BACKWARDS]


def test_stable_offset_grows(history):
    history.stable(3)
    began_ns = history.later()
    history.stable(7)
    history.stable(5, began_ns)  # Its request was sent before 7 was known.
    assert history.names == []
    history.stable(6)
    assert history.names == [Name.UNSTABLE]


def test_failures_and_a_missing_reader(history):
    history.events.append(Failure("writer", history.later(), "error"))
    assert history.names == [Name.FAILURE]
    del history.events[0]
    assert history.names == [Name.UNSEEN, Name.FAILURE]
