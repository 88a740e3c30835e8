"""The overview, built from snapshots."""

from kafscale.admin.cluster.metadata_health import MetadataHealth
from kafscale.admin.cluster.metrics import PartitionLag
from kafscale.console.monitor.state import (
    LAG_GROUPS_MAX,
    LAG_SERIES_MAX,
    TOPIC_SERIES_MAX,
    MonitorState,
)
from kafscale.console.monitor.views import SnapshotViews, overview
from services.cluster_snapshots import broker, group, metrics, partition, snapshot, topic

EMBEDDED = MetadataHealth("embedded", "healthy", 1, 1, None, None)


def build_overview(state):
    return overview(state, EMBEDDED, store_description="s3://bucket/default", is_bucket=True)


def snapshot_at(at_ms, produced, lag):
    measured = metrics(
        produced={("orders", 0): produced},
        stored={("orders", 0): 10**9},
        lags=(PartitionLag("billing", "orders", 0, lag),),
    )
    return snapshot(
        broker(1, partitions=(partition("orders", 0, records=50),), measured=measured),
        at_ms=at_ms,
        topics=(topic("orders"), topic("__consumer_offsets", 50, internal=True)),
        groups=(group("billing"), group("new", None)),
    )


def test_overview_is_complete():
    state = MonitorState(snapshot_at(0, 0, 30))
    state.update(snapshot_at(4000, 400, 20))
    result = build_overview(state)
    assert result.health.state == "healthy"
    assert result.totals.topic_count == 1
    assert result.totals.partition_count == 1
    assert result.totals.group_count == 2
    assert result.totals.connections == 3
    assert result.totals.consumer_lag == 20
    assert result.totals.stored_bytes == 10**9
    assert result.totals.produce_bytes_per_second == 100
    assert [point.value for point in result.throughput[0].points] == [100]
    assert [point.value for point in result.lag[0].points] == [30, 20]
    assert [(each.group, each.lag) for each in result.top_lags] == [("billing", 20)]
    assert round(result.cost.storage_per_day, 6) == round(0.023 / 30, 6)
    assert result.cost.total_per_day is None

    lists = SnapshotViews(state, result)
    assert lists.topics["orders"].produce_bytes_per_second == 100
    assert lists.topics["orders"].record_count == 50
    assert lists.groups["billing"].lag == 20
    assert lists.groups["billing"].topics == ["orders"]
    assert lists.groups["new"].lag is None
    assert [each.value for each in state.topic_throughput("orders")[0].points] == [100]
    assert [each.name for each in state.lag_history("billing")] == ["orders"]


def test_overview_keeps_the_past_while_no_broker_responds():
    state = MonitorState(snapshot_at(0, 0, 30))
    state.update(snapshot(at_ms=4000, problem="refused", topics=(topic("orders"),)))
    result = build_overview(state)
    assert result.health.state == "down"
    assert [each.state for each in result.brokers] == ["unreachable"]
    assert result.totals.stored_bytes == 10**9
    assert result.totals.leaderless_count == 1
    assert result.totals.produce_bytes_per_second is None
    assert result.controller is None
    assert len(result.lag[0].points) == 1


def test_memory_is_bounded_for_many_topics_and_groups():
    state = MonitorState(snapshot(broker(1, measured=metrics())))
    names = [f"name-{number}" for number in range(TOPIC_SERIES_MAX)]
    measured = metrics(
        produced={(name, 0): 7 for name in names},
        fetched={(name, 0): 7 for name in names},
        lags=tuple(PartitionLag(name, each, 0, 1) for name in names for each in ("a", "b", "c")),
    )
    state.update(snapshot(broker(1, measured=measured), at_ms=4000))
    assert len(state._topics) == TOPIC_SERIES_MAX
    assert len(state._lags) <= LAG_SERIES_MAX
    assert len({name for name, _ in state._lags}) <= LAG_GROUPS_MAX
    assert len(build_overview(state).top_lags) == 10
