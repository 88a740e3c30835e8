"""What is remembered of the last minutes, and no more than that."""

from kafscale.console.monitor.history import AGE_MS_MAX, POINTS_MAX, SPACING_MS, History, Line


def drawn(line):
    return [(each.at_ms, each.value) for each in line.points()]


def test_a_line_has_a_bound_in_points_and_in_time():
    line = Line()
    for number in range(3 * POINTS_MAX):
        line.put(number * SPACING_MS, number)
    assert len(line) <= POINTS_MAX
    newest = (3 * POINTS_MAX - 1) * SPACING_MS
    assert drawn(line)[-1] == (newest, 3 * POINTS_MAX - 1)
    assert drawn(line)[0][0] >= newest - AGE_MS_MAX


def test_what_comes_together_is_one_point():
    rate, level = Line(), Line(is_level=True)
    for line in (rate, level):
        for at_ms, value in ((0, 9.0), (1000, 0.0), (2000, 3.0), (SPACING_MS, 5.0)):
            line.put(at_ms, value)
    assert drawn(rate) == [(2000, 4.0), (SPACING_MS, 5.0)]
    assert drawn(level) == [(2000, 3.0), (SPACING_MS, 5.0)]


def test_a_clock_that_is_set_back_draws_nothing_twice():
    line = Line()
    line.put(10_000, 1.0)
    line.put(5_000, 2.0)
    assert drawn(line) == [(10_000, 1.0)]


def test_there_are_as_many_lines_as_was_said_and_quiet_ones_are_not_begun():
    history = History(2)
    for name, value in (("a", 0.0), ("b", 1.0), ("c", 1.0), ("d", 1.0)):
        history.put(name, 0, value)
    assert list(history) == ["b", "c"]
    history.put("b", SPACING_MS, 0.0)
    assert [each.value for each in history.points("b")] == [1.0, 0.0]
    assert history.points("a") == []


def test_a_line_of_which_nothing_is_left_makes_room():
    history = History(1)
    history.put("a", 0, 1.0)
    history.end_stale(AGE_MS_MAX)
    assert list(history) == ["a"]
    history.end_stale(AGE_MS_MAX + 1)
    history.put("b", AGE_MS_MAX + 1, 1.0)
    assert list(history) == ["b"]
