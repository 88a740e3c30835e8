"""What is counted beside the verdict."""

from chaos.history_statistics import statistics
from unit.chaos.history_builder import PARTITION, STEP_NS, HistoryBuilder


def test_a_history_in_figures():
    builder = HistoryBuilder()
    builder.encode_value("a", "b")
    builder.sent("careful", "fail", "c")
    builder.sent("careful", "info", "d")
    builder.read("reader", (0, "a"), (1, "b"))
    builder.committed("first", 2)
    builder.committed("first", 2, "info")
    builder.end_read(2)
    assert statistics(builder.events).counts == {
        "sends": 4,
        "acknowledged": 2,
        "refused": 1,
        "in doubt": 1,
        "records read": 2,
        "commits": 1,
        "questions": 1,
    }


def test_the_longest_pause_is_that_of_one_partition():
    builder = HistoryBuilder()
    builder.encode_value("a")
    began_ns = builder.now_ns
    builder.now_ns += 3_000_000_000
    builder.invoke("careful", "b", "topic/1")
    builder.done("careful", "ok", "b", 0, "topic/1")
    builder.encode_value("c", start=1)
    pause = statistics(builder.events).longest_pause
    assert (pause.partition, pause.began_ns) == (PARTITION, began_ns)
    assert pause.seconds == (3_000_000_000 + 4 * STEP_NS) / 1e9


def test_nothing_has_no_pause():
    assert statistics([]).operations == 0
    assert statistics([]).longest_pause.seconds == 0
