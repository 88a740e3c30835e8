"""Rates between snapshots."""

from kafscale.admin.cluster.metrics import OTHER
from kafscale.console.monitor.rates import RateMeter, TopicRate
from services.cluster_snapshots import broker, metrics, snapshot


def test_rates_are_known_at_the_second_snapshot():
    meter = RateMeter()
    first = metrics(produced={("a", 0): 100}, fetched={("a", 0): 40}, requests=(5, 50))
    assert meter.update(snapshot(broker(1, measured=first), at_ms=1000)).brokers == {}
    second = metrics(
        produced={("a", 0): 300, ("a", 1): 100, ("b", 0): 0, OTHER: 20},
        fetched={("a", 0): 40},
        requests=(7, 54),
    )
    rates = meter.update(snapshot(broker(1, measured=second), at_ms=3000))
    assert rates.brokers[1].produce_bytes == 160
    assert rates.brokers[1].fetch_bytes == 0
    assert rates.brokers[1].produce_requests == 1
    assert rates.brokers[1].fetch_requests == 2
    assert rates.topics == {"a": TopicRate(150.0, 0.0)}
    assert rates.total("produce_bytes") == 160


def test_restarted_broker_counts_from_zero():
    meter = RateMeter()
    meter.update(snapshot(broker(1, epoch=1, measured=metrics(produced={("a", 0): 100})), at_ms=0))
    again = broker(1, epoch=2, measured=metrics(produced={("a", 0): 150}))
    assert meter.update(snapshot(again, at_ms=1000)).brokers[1].produce_bytes == 150


def test_moved_partition_is_counted_on_its_new_broker():
    meter = RateMeter()
    meter.update(
        snapshot(
            broker(1, measured=metrics(produced={("a", 0): 9000})),
            broker(2, measured=metrics()),
            at_ms=0,
        )
    )
    rates = meter.update(
        snapshot(
            broker(1, measured=metrics()),
            broker(2, measured=metrics(produced={("a", 0): 10})),
            at_ms=1000,
        )
    )
    assert rates.topics == {"a": TopicRate(10.0, 0.0)}
    assert rates.brokers[1].produce_bytes == 0


def test_close_snapshots_keep_the_rates():
    meter = RateMeter()
    for at_ms, produced in ((0, 0), (2000, 100), (2010, 5000)):
        status = broker(1, measured=metrics(produced={("a", 0): produced}))
        rates = meter.update(snapshot(status, at_ms=at_ms))
    assert rates.brokers[1].produce_bytes == 50
    status = broker(1, measured=metrics(produced={("a", 0): 5100}))
    assert meter.update(snapshot(status, at_ms=4000)).brokers[1].produce_bytes == 2500


def test_rates_are_unknown_after_a_gap_or_without_metrics():
    meter = RateMeter()
    for at_ms in (0, 1000):
        rates = meter.update(snapshot(broker(1, measured=metrics()), at_ms=at_ms))
    assert rates.total("produce_bytes") == 0
    rates = meter.update(snapshot(broker(1, measured=metrics()), at_ms=10_000_000))
    assert rates.total("produce_bytes") is None
    assert meter.update(snapshot(broker(1), at_ms=10_002_000)).brokers == {}
