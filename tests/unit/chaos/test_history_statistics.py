"""The statistics of a history."""

from chaos.history import Merge
from chaos.history_statistics import statistics
from unit.chaos.history_builder import PARTITION, STEP_NS, HistoryBuilder


def test_operations_are_counted_by_outcome():
    builder = HistoryBuilder()
    builder.acknowledged("a", "b")
    builder.sent("idempotent", "fail", "c")
    builder.sent("idempotent", "info", "d")
    builder.read("reader", (0, "a"), (1, "b"))
    builder.committed("first", 2)
    builder.committed("first", 2, "info")
    builder.end_read(2)
    assert statistics(builder.events).counts == {
        "sends": 4,
        "acknowledged": 2,
        "rejected": 1,
        "unknown outcome": 1,
        "records read": 2,
        "commits": 1,
        "queries": 1,
    }


def test_merges_and_topic_deletions_are_counted():
    builder = HistoryBuilder()
    builder.topic_deleted()
    builder.add(Merge("merger", builder.later(), 2))
    builder.add(Merge("merger", builder.later(), 3, "its segments have changed"))
    counts = statistics(builder.events).counts
    assert counts == {"topic deletions": 1, "merges": 1, "failed merges": 1}


def test_longest_pause_is_measured_per_partition():
    builder = HistoryBuilder()
    builder.acknowledged("a")
    began_ns = builder.now_ns
    builder.now_ns += 3_000_000_000
    builder.invoke("idempotent", "b", "topic/1")
    builder.done("idempotent", "ok", "b", 0, "topic/1")
    builder.acknowledged("c", start=1)
    pause = statistics(builder.events).longest_pause
    assert (pause.partition, pause.began_ns) == (PARTITION, began_ns)
    assert pause.seconds == (3_000_000_000 + 4 * STEP_NS) / 1e9


def test_empty_history_has_no_pause():
    assert statistics([]).operations == 0
    assert statistics([]).longest_pause.seconds == 0
