"""`Rate`: rates over a window, however often they are read."""

from kafscale.observability.metrics.histogram import Rate


def test_rate_covers_the_window_only():
    rate = Rate(now=0, window_seconds=60)
    readings = {now: rate.per_second(now, total=now * 10) for now in range(10, 310, 10)}
    assert set(readings.values()) == {10}
    for now in range(310, 360, 10):
        assert 0 < rate.per_second(now, total=3000) < 10
    for now in range(360, 400, 10):
        assert rate.per_second(now, total=3000) == 0


def test_infrequent_reader_gets_the_rate_since_its_last_read():
    rate = Rate(now=0, window_seconds=60)
    assert rate.per_second(1000, total=1000) == 1
    assert rate.per_second(2000, total=5000) == 4


def test_rate_without_elapsed_time_is_zero():
    assert Rate(now=5).per_second(5, total=100) == 0


def test_frequent_reads_store_few_readings():
    rate = Rate(now=0, window_seconds=60)
    for step in range(10_000):
        rate.per_second(step / 100, total=step)
    assert len(rate._readings) <= 63
