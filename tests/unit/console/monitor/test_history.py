"""Time series of the last minutes."""

from kafscale.console.monitor.history import AGE_MS_MAX, POINTS_MAX, SPACING_MS, History, TimeSeries


def points_of(series):
    return [(each.at_ms, each.value) for each in series.points()]


def test_series_is_bounded_in_points_and_time():
    series = TimeSeries()
    for number in range(3 * POINTS_MAX):
        series.add(number * SPACING_MS, number)
    assert len(series) <= POINTS_MAX
    newest = (3 * POINTS_MAX - 1) * SPACING_MS
    assert points_of(series)[-1] == (newest, 3 * POINTS_MAX - 1)
    assert points_of(series)[0][0] >= newest - AGE_MS_MAX


def test_close_values_are_one_point():
    rate, gauge = TimeSeries(), TimeSeries(is_gauge=True)
    for series in (rate, gauge):
        for at_ms, value in ((0, 9.0), (1000, 0.0), (2000, 3.0), (SPACING_MS, 5.0)):
            series.add(at_ms, value)
    assert points_of(rate) == [(2000, 4.0), (SPACING_MS, 5.0)]
    assert points_of(gauge) == [(2000, 3.0), (SPACING_MS, 5.0)]


def test_clock_set_back_adds_no_points():
    series = TimeSeries()
    series.add(10_000, 1.0)
    series.add(5_000, 2.0)
    assert points_of(series) == [(10_000, 1.0)]


def test_series_are_limited_and_zeros_start_none():
    history = History(2)
    for name, value in (("a", 0.0), ("b", 1.0), ("c", 1.0), ("d", 1.0)):
        history.add(name, 0, value)
    assert list(history) == ["b", "c"]
    history.add("b", SPACING_MS, 0.0)
    assert [each.value for each in history.points("b")] == [1.0, 0.0]
    assert history.points("a") == []


def test_stale_series_are_dropped():
    history = History(1)
    history.add("a", 0, 1.0)
    history.drop_stale(AGE_MS_MAX)
    assert list(history) == ["a"]
    history.drop_stale(AGE_MS_MAX + 1)
    history.add("b", AGE_MS_MAX + 1, 1.0)
    assert list(history) == ["b"]
