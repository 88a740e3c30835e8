"""What was asked of the object store in the last minutes."""

from math import inf

import pytest

from kafscale.admin.cluster.figures import Operation
from kafscale.console.monitor.s3_window import WINDOW_MS, StoreWindow
from services.looks import broker, figures, look


def put(quick, slow=0):
    total = quick + slow
    buckets = ((0.01, quick), (1.0, total), (inf, total))
    return figures(operations={"put": Operation(succeeded=total, buckets=buckets)})


def test_nothing_is_said_before_it_was_seen_for_a_while():
    window = StoreWindow()
    window.take(look(broker(1, measured=put(1000)), at_ms=0))
    window.take(look(broker(1, measured=put(1010)), at_ms=5000))
    assert window.operations_per_second() is None
    window.take(look(broker(1, measured=put(1020)), at_ms=20_000))
    assert window.operations_per_second() == {"put": 1.0}


def test_latencies_are_those_of_the_window_and_of_all_brokers():
    window = StoreWindow()
    window.take(look(broker(1, measured=put(0, 900)), broker(2, measured=put(0)), at_ms=0))
    assert window.p99_seconds() == {}
    window.take(look(broker(1, measured=put(100, 900)), broker(2, measured=put(100)), at_ms=60_000))
    assert window.p99_seconds() == {"put": pytest.approx(0.0099)}
    window.take(
        look(broker(1, measured=put(100, 900)), broker(2, measured=put(100, 200)), at_ms=90_000)
    )
    assert window.p99_seconds()["put"] > 0.9


def test_what_is_older_than_the_window_is_forgotten():
    window = StoreWindow()
    for at_ms, count in ((0, 0), (10_000, 5000), (WINDOW_MS + 10_000, 5300)):
        window.take(look(broker(1, measured=put(count)), at_ms=at_ms))
    assert window.operations_per_second() == {"put": 1.0}


def test_a_broker_that_is_away_or_begins_anew_takes_nothing_away():
    window = StoreWindow()
    window.take(look(broker(1, measured=put(100)), at_ms=0))
    window.take(look(broker(1, "unreachable"), at_ms=5000))
    window.take(look(broker(1, measured=put(110)), at_ms=10_000))
    window.take(look(broker(1, epoch=2, measured=put(10)), at_ms=20_000))
    assert window.operations_per_second() == {"put": 1.0}
