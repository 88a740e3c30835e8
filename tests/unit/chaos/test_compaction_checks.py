"""The checker reports what compaction must not do, and nothing that it may."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.anomalies import Name
from chaos.checker import check_compacted
from chaos.history import AnyEvent, Consumer, Poll, Scan
from chaos.keyed_value import KeyedValue
from unit.chaos.history_builder import PARTITION, HistoryBuilder


def value(key: str, number: int) -> str:
    return str(KeyedValue(key, f"idempotent:{number}", is_tombstone=False))


def tombstone(key: str, number: int) -> str:
    return str(KeyedValue(key, f"idempotent:{number}", is_tombstone=True))


A0, A1, A2 = value("a", 0), value("a", 1), value("a", 2)
B0, DELETED = value("b", 10), tombstone("a", 20)


@pytest.fixture
def builder() -> HistoryBuilder:
    return HistoryBuilder()


def scan(builder: HistoryBuilder, *records: tuple[int, str], reader: str = "final") -> None:
    began_ns = builder.later()
    if records:
        builder.read(reader, *records)
    builder.add(Scan(reader, builder.later(), began_ns, PARTITION))


def names(builder: HistoryBuilder) -> list[Name]:
    return [anomaly.name for anomaly in check_compacted(builder.events)]


# --- correct --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "left",
    [
        [(0, A0), (1, B0), (2, DELETED), (3, A1)],
        [(1, B0), (2, DELETED), (3, A1)],
        [(1, B0), (3, A1)],
    ],
)
def test_records_with_a_later_one_may_be_removed(builder, left):
    builder.acknowledged(A0, B0, DELETED, A1)
    scan(builder, *left)
    assert names(builder) == []


@pytest.mark.parametrize("left", [[(0, A0), (1, DELETED)], [(1, DELETED)], []])
def test_deleted_key_may_be_absent_or_read_with_its_deletion(builder, left):
    builder.acknowledged(A0, DELETED)
    scan(builder, *left)
    assert names(builder) == []


def test_tombstone_of_unknown_outcome_may_delete_a_key(builder):
    builder.acknowledged(A0)
    builder.sent("idempotent", "info", DELETED)
    scan(builder)
    assert names(builder) == []


def test_reader_may_miss_what_was_acknowledged_after_it_began(builder):
    began_ns = builder.later()
    builder.acknowledged(A0)
    builder.add(Scan("reader", builder.later(), began_ns, PARTITION))
    scan(builder, (0, A0))
    assert names(builder) == []


# --- anomalies ------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [[], [(0, A0)], [(1, A1)]])
def test_lost_latest_value_is_reported(builder, left):
    builder.acknowledged(A0, A1, A2)
    scan(builder, *left)
    assert names(builder) == [Name.LOST_KEY]


def test_value_lost_in_one_read_only_is_reported(builder):
    builder.acknowledged(A0)
    scan(builder, reader="reader")
    scan(builder, (0, A0))
    assert names(builder) == [Name.LOST_KEY]


def test_value_without_a_later_tombstone_is_lost(builder):
    builder.acknowledged(DELETED, A0)
    builder.sent("idempotent", "fail", tombstone("a", 21))
    builder.sent("idempotent", "info", tombstone("b", 22))
    scan(builder)
    assert names(builder) == [Name.LOST_KEY]


def test_deleted_key_that_comes_back_is_reported(builder):
    builder.acknowledged(A0, DELETED)
    scan(builder, (0, A0))
    assert names(builder) == [Name.DELETED_KEY]


def test_other_record_at_an_acknowledged_offset_is_reported(builder):
    builder.acknowledged(A0)
    builder.invoke("idempotent", B0)
    scan(builder, (0, B0), (1, A0))
    assert Name.INCONSISTENT in names(builder)


def test_record_with_another_key_is_reported(builder):
    builder.acknowledged(A0)
    scan(builder, (0, A0), (1, str(KeyedValue("b", "idempotent:0", is_tombstone=False))))
    assert names(builder) == [Name.NEVER_SENT]


def test_descending_offsets_are_reported(builder):
    builder.acknowledged(A0, B0)
    scan(builder, (1, B0), (0, A0))
    assert Name.BACKWARDS_INSIDE in names(builder)


def test_round_without_a_last_read_is_reported(builder):
    builder.acknowledged(A0)
    scan(builder, (0, A0), reader="reader")
    assert names(builder) == [Name.UNSEEN]


def test_failure_of_a_client_is_reported(builder):
    builder.failed("idempotent", "fatal")
    assert names(builder) == [Name.FAILURE]


# --- random histories -----------------------------------------------------------------------------


def history(rng: random.Random) -> tuple[list[AnyEvent], list[tuple[int, str]]]:
    """A log, compacted between its readers; and what is left of it at the end."""
    builder = HistoryBuilder()
    log: list[tuple[int, str]] = []
    for number in range(rng.randint(1, 30)):
        is_tombstone = rng.random() < 0.3
        each = str(KeyedValue(f"k{rng.randrange(4)}", f"i:{number}", is_tombstone=is_tombstone))
        builder.sent("idempotent", "ok", each, number)
        log.append((number, each))
        if rng.random() < 0.3:
            log = _compacted(log, rng)
        if rng.random() < 0.2:
            reader = f"reader-{number}"
            builder.add(Consumer(reader, builder.later()))
            scan(builder, *log, reader=reader)
    return builder.events, log


def _compacted(log: list[tuple[int, str]], rng: random.Random) -> list[tuple[int, str]]:
    latest = {KeyedValue.parse(each).key: offset for offset, each in log}
    return [
        (offset, each)
        for offset, each in log
        if latest[(parsed := KeyedValue.parse(each)).key] == offset
        and (not parsed.is_tombstone or rng.random() < 0.5)
    ]


def finished(events: list[AnyEvent], left: list[tuple[int, str]]) -> list[Name]:
    """What is reported if this is left at the end."""
    now_ns = events[-1].time_ns
    polls = [Poll("final", now_ns + 2, {PARTITION: left})] if left else []
    end = [*polls, Scan("final", now_ns + 3, now_ns + 1, PARTITION)]
    return [anomaly.name for anomaly in check_compacted([*events, *end])]


@given(st.integers(0, 2**32))
def test_compacted_log_is_correct(seed):
    assert finished(*history(random.Random(seed))) == []


@given(st.integers(0, 2**32))
def test_every_missing_latest_value_is_reported(seed):
    events, left = history(random.Random(seed))
    latest = {KeyedValue.parse(each).key: (offset, each) for offset, each in left}
    for lost in latest.values():
        is_value = not KeyedValue.parse(lost[1]).is_tombstone
        rest = [each for each in left if each != lost]
        older = any(KeyedValue.parse(each).key == KeyedValue.parse(lost[1]).key for _, each in rest)
        expected = [Name.LOST_KEY] if is_value else [Name.DELETED_KEY] if older else []
        assert finished(events, rest) == expected
