"""How fast things go, whatever begins anew in between."""

from kafscale.admin.cluster.figures import OTHER
from kafscale.console.monitor.rates import Pace, TopicRate
from services.looks import broker, figures, look


def test_growth_becomes_a_rate_at_the_second_look():
    pace = Pace()
    first = figures(produced={("a", 0): 100}, fetched={("a", 0): 40}, requests=(5, 50))
    assert pace.take(look(broker(1, measured=first), at_ms=1000)).brokers == {}
    second = figures(
        produced={("a", 0): 300, ("a", 1): 100, ("b", 0): 0, OTHER: 20},
        fetched={("a", 0): 40},
        requests=(7, 54),
    )
    rates = pace.take(look(broker(1, measured=second), at_ms=3000))
    assert rates.brokers[1].produce_bytes == 160
    assert rates.brokers[1].fetch_bytes == 0
    assert rates.brokers[1].produce_requests == 1
    assert rates.brokers[1].fetch_requests == 2
    assert rates.topics == {"a": TopicRate(150.0, 0.0)}
    assert rates.total("produce_bytes") == 160


def test_a_broker_that_began_anew_has_counted_from_nothing():
    pace = Pace()
    pace.take(look(broker(1, epoch=1, measured=figures(produced={("a", 0): 100})), at_ms=0))
    again = broker(1, epoch=2, measured=figures(produced={("a", 0): 150}))
    assert pace.take(look(again, at_ms=1000)).brokers[1].produce_bytes == 150


def test_a_partition_that_moves_is_counted_where_it_is():
    pace = Pace()
    pace.take(
        look(
            broker(1, measured=figures(produced={("a", 0): 9000})),
            broker(2, measured=figures()),
            at_ms=0,
        )
    )
    rates = pace.take(
        look(
            broker(1, measured=figures()),
            broker(2, measured=figures(produced={("a", 0): 10})),
            at_ms=1000,
        )
    )
    assert rates.topics == {"a": TopicRate(10.0, 0.0)}
    assert rates.brokers[1].produce_bytes == 0


def test_looks_that_follow_closely_keep_the_rate_that_there_was():
    pace = Pace()
    for at_ms, produced in ((0, 0), (2000, 100), (2010, 5000)):
        seen = broker(1, measured=figures(produced={("a", 0): produced}))
        rates = pace.take(look(seen, at_ms=at_ms))
    assert rates.brokers[1].produce_bytes == 50
    seen = broker(1, measured=figures(produced={("a", 0): 5100}))
    assert pace.take(look(seen, at_ms=4000)).brokers[1].produce_bytes == 2500


def test_after_a_long_while_or_without_figures_nothing_is_known():
    pace = Pace()
    for at_ms in (0, 1000):
        rates = pace.take(look(broker(1, measured=figures()), at_ms=at_ms))
    assert rates.total("produce_bytes") == 0
    rates = pace.take(look(broker(1, measured=figures()), at_ms=10_000_000))
    assert rates.total("produce_bytes") is None
    assert pace.take(look(broker(1), at_ms=10_002_000)).brokers == {}
