"""The page of a cluster, of looks that are remembered."""

from kafscale.admin.cluster.figures import Lag
from kafscale.admin.cluster.metadata_health import MetadataLook
from kafscale.console.monitor.event import Told
from kafscale.console.monitor.overview import overview
from kafscale.console.monitor.state import (
    LAG_GROUPS_MAX,
    LAG_LINES_MAX,
    TOPIC_LINES_MAX,
    Remembered,
)
from services.looks import broker, figures, group, look, partition, topic

EMBEDDED = MetadataLook("embedded", "healthy", 1, 1, None, None)


def page(remembered):
    return overview(remembered, EMBEDDED, place="s3://bucket/default", is_bucket=True)


def seen(at_ms, produced, lag):
    measured = figures(
        produced={("orders", 0): produced},
        stored={("orders", 0): 10**9},
        lags=(Lag("billing", "orders", 0, lag),),
    )
    return look(
        broker(1, partitions=(partition("orders", 0, records=50),), measured=measured),
        at_ms=at_ms,
        topics=(topic("orders"), topic("__consumer_offsets", 50, internal=True)),
        groups=(group("billing"), group("new", None)),
    )


def test_everything_is_on_it():
    remembered = Remembered(seen(0, 0, 30))
    remembered.take(seen(4000, 400, 20))
    told = page(remembered)
    assert told.health.state == "healthy"
    assert told.totals.topic_count == 1
    assert told.totals.partition_count == 1
    assert told.totals.group_count == 2
    assert told.totals.connections == 3
    assert told.totals.consumer_lag == 20
    assert told.totals.stored_bytes == 10**9
    assert told.totals.produce_bytes_per_second == 100
    assert [point.value for point in told.throughput[0].points] == [100]
    assert [point.value for point in told.lag[0].points] == [30, 20]
    assert [(each.group, each.lag) for each in told.top_lags] == [("billing", 20)]
    assert round(told.cost.storage_per_day, 6) == round(0.023 / 30, 6)
    assert told.cost.total_per_day is None

    lists = Told(remembered, told)
    assert lists.topics["orders"].produce_bytes_per_second == 100
    assert lists.topics["orders"].record_count == 50
    assert lists.groups["billing"].lag == 20
    assert lists.groups["billing"].topics == ["orders"]
    assert lists.groups["new"].lag is None
    assert [each.value for each in remembered.topic_throughput("orders")[0].points] == [100]
    assert [each.name for each in remembered.lag_history("billing")] == ["orders"]


def test_while_nobody_answers_the_past_is_told_and_nothing_is_drawn():
    remembered = Remembered(seen(0, 0, 30))
    remembered.take(look(at_ms=4000, problem="refused", topics=(topic("orders"),)))
    told = page(remembered)
    assert told.health.state == "down"
    assert [each.state for each in told.brokers] == ["unreachable"]
    assert told.totals.stored_bytes == 10**9
    assert told.totals.leaderless_count == 1
    assert told.totals.produce_bytes_per_second is None
    assert told.controller is None
    assert len(told.lag[0].points) == 1


def test_however_many_topics_and_groups_there_are_memory_has_a_bound():
    remembered = Remembered(look(broker(1, measured=figures())))
    names = [f"name-{number}" for number in range(TOPIC_LINES_MAX)]
    measured = figures(
        produced={(name, 0): 7 for name in names},
        fetched={(name, 0): 7 for name in names},
        lags=tuple(Lag(name, each, 0, 1) for name in names for each in ("a", "b", "c")),
    )
    remembered.take(look(broker(1, measured=measured), at_ms=4000))
    assert len(remembered._topics) == TOPIC_LINES_MAX
    assert len(remembered._lags) <= LAG_LINES_MAX
    assert len({name for name, _ in remembered._lags}) <= LAG_GROUPS_MAX
    assert len(page(remembered).top_lags) == 10
