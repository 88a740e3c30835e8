"""Object store requests of the last minutes."""

from math import inf

import pytest

from kafscale.admin.cluster.metrics import StoreOperation
from kafscale.console.monitor.s3_window import WINDOW_MS, StoreWindow
from services.cluster_snapshots import broker, metrics, snapshot


def put(fast, slow=0):
    total = fast + slow
    buckets = ((0.01, fast), (1.0, total), (inf, total))
    return metrics(operations={"put": StoreOperation(succeeded=total, buckets=buckets)})


def test_rates_need_a_minimum_time():
    window = StoreWindow()
    window.update(snapshot(broker(1, measured=put(1000)), at_ms=0))
    window.update(snapshot(broker(1, measured=put(1010)), at_ms=5000))
    assert window.operations_per_second() is None
    window.update(snapshot(broker(1, measured=put(1020)), at_ms=20_000))
    assert window.operations_per_second() == {"put": 1.0}


def test_latencies_cover_the_window_and_all_brokers():
    window = StoreWindow()
    window.update(snapshot(broker(1, measured=put(0, 900)), broker(2, measured=put(0)), at_ms=0))
    assert window.p99_seconds() == {}
    window.update(
        snapshot(broker(1, measured=put(100, 900)), broker(2, measured=put(100)), at_ms=60_000)
    )
    assert window.p99_seconds() == {"put": pytest.approx(0.0099)}
    window.update(
        snapshot(broker(1, measured=put(100, 900)), broker(2, measured=put(100, 200)), at_ms=90_000)
    )
    assert window.p99_seconds()["put"] > 0.9


def test_old_samples_leave_the_window():
    window = StoreWindow()
    for at_ms, count in ((0, 0), (10_000, 5000), (WINDOW_MS + 10_000, 5300)):
        window.update(snapshot(broker(1, measured=put(count)), at_ms=at_ms))
    assert window.operations_per_second() == {"put": 1.0}


def test_unreachable_or_restarted_broker_subtracts_nothing():
    window = StoreWindow()
    window.update(snapshot(broker(1, measured=put(100)), at_ms=0))
    window.update(snapshot(broker(1, "unreachable"), at_ms=5000))
    window.update(snapshot(broker(1, measured=put(110)), at_ms=10_000))
    window.update(snapshot(broker(1, epoch=2, measured=put(10)), at_ms=20_000))
    assert window.operations_per_second() == {"put": 1.0}
