"""Rates: over a window, whoever reads them and however often."""

from kafscale.observability.metrics.histogram import Rate


def test_a_rate_is_that_of_the_window_not_of_all_time():
    rate = Rate(now=0, window_seconds=60)
    readings = {now: rate.per_second(now, total=now * 10) for now in range(10, 310, 10)}
    assert set(readings.values()) == {10}
    for now in range(310, 360, 10):
        assert 0 < rate.per_second(now, total=3000) < 10
    for now in range(360, 400, 10):
        assert rate.per_second(now, total=3000) == 0


def test_a_reader_that_comes_seldom_gets_the_rate_since_its_last_visit():
    rate = Rate(now=0, window_seconds=60)
    assert rate.per_second(1000, total=1000) == 1
    assert rate.per_second(2000, total=5000) == 4


def test_no_time_is_no_rate():
    assert Rate(now=5).per_second(5, total=100) == 0


def test_a_reader_that_comes_often_is_not_remembered_each_time():
    rate = Rate(now=0, window_seconds=60)
    for step in range(10_000):
        rate.per_second(step / 100, total=step)
    assert len(rate._readings) <= 63
