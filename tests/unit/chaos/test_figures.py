"""What is counted beside the verdict."""

from chaos.figures import figures
from unit.chaos.tale import PARTITION, STEP_NS, Tale


def test_a_history_in_figures():
    tale = Tale()
    tale.written("a", "b")
    tale.sent("careful", "fail", "c")
    tale.sent("careful", "info", "d")
    tale.read("reader", (0, "a"), (1, "b"))
    tale.committed("first", 2)
    tale.committed("first", 2, "info")
    tale.end_read(2)
    assert figures(tale.events).counts == {
        "sends": 4,
        "acknowledged": 2,
        "refused": 1,
        "in doubt": 1,
        "records read": 2,
        "commits": 1,
        "questions": 1,
    }


def test_the_longest_pause_is_that_of_one_partition():
    tale = Tale()
    tale.written("a")
    began_ns = tale.now_ns
    tale.now_ns += 3_000_000_000
    tale.invoke("careful", "b", "topic/1")
    tale.done("careful", "ok", "b", 0, "topic/1")
    tale.written("c", start=1)
    pause = figures(tale.events).longest_pause
    assert (pause.partition, pause.began_ns) == (PARTITION, began_ns)
    assert pause.seconds == (3_000_000_000 + 4 * STEP_NS) / 1e9


def test_nothing_has_no_pause():
    assert figures([]).operations == 0
    assert figures([]).longest_pause.seconds == 0
