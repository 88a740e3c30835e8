"""Each reason for a cluster to be unhealthy."""

import msgspec
import pytest

from kafscale.admin.cluster import metadata_health
from kafscale.admin.cluster.health import evaluate, store_state
from kafscale.admin.cluster.metadata_health import MetadataHealth
from kafscale.admin.topics.usage import topic_usage
from services.cluster_snapshots import broker, partition, snapshot, topic

EMBEDDED = MetadataHealth("embedded", "healthy", 1, 1, None, None)


def evaluated(state, metadata=EMBEDDED, gone=()):
    result = evaluate(state, topic_usage(state), metadata, gone)
    return result.state, [(each.severity, each.subject) for each in result.reasons]


def test_cluster_without_problems_is_healthy():
    state = snapshot(broker(1, partitions=(partition("orders", 0),)), topics=(topic("orders"),))
    assert evaluated(state) == ("healthy", [])


def test_cluster_without_response_is_down():
    state = snapshot(problem="connection refused", topics=(topic("orders"),))
    result = evaluate(state, topic_usage(state), EMBEDDED)
    assert result.state == "down"
    assert [each.sentence for each in result.reasons] == ["No broker responds: connection refused"]


def test_cluster_without_ready_broker_is_down():
    state = snapshot(broker(1, "not ready", problems={"object storage": "unavailable"}))
    assert evaluated(state) == ("down", [("critical", "broker 1")])


@pytest.mark.parametrize("state", ["unreachable", "not ready"])
def test_failing_broker_is_critical_and_says_why(state):
    state = snapshot(broker(1), broker(2, state, problems={"lease": "not proven"}))
    result = evaluate(state, {}, EMBEDDED)
    assert result.state == "degraded"
    (reason,) = result.reasons
    assert (reason.severity, reason.subject) == ("critical", "broker 2")
    assert "lease: not proven" in reason.sentence


def test_gone_broker_is_critical_and_draining_one_is_not():
    state = snapshot(broker(1), broker(2, "draining", is_draining=True))
    expected = [("critical", "broker 3"), ("warning", "broker 2")]
    assert evaluated(state, gone=[3]) == ("degraded", expected)


def test_missing_controller_is_critical():
    assert evaluated(snapshot(broker(1), controller=None)) == (
        "degraded",
        [("critical", "cluster")],
    )


def test_missing_metrics_are_reported_only_with_a_problem():
    silent = msgspec.structs.replace(broker(1), metrics_problem="cannot scrape")
    assert evaluated(snapshot(silent)) == ("degraded", [("warning", "broker 1")])
    assert evaluated(snapshot(broker(1))) == ("healthy", [])


@pytest.mark.parametrize(
    ("states", "worst", "severity"),
    [
        (["healthy", "degraded"], "degraded", "warning"),
        (["unavailable", "degraded", None], "unavailable", "critical"),
    ],
)
def test_store_state_is_the_worst_of_all_brokers(states, worst, severity):
    brokers = [broker(number, store_health=each) for number, each in enumerate(states, 1)]
    assert store_state(brokers) == worst
    assert evaluated(snapshot(*brokers)) == ("degraded", [(severity, "S3")])


def test_many_leaderless_topics_are_summarized():
    state = snapshot(broker(1), topics=tuple(topic(f"t{number}") for number in range(9)))
    _, reasons = evaluated(state)
    assert reasons == [*(("critical", f"topic t{n}") for n in range(5)), ("critical", "topics")]


def test_internal_topics_are_not_leaderless():
    state = snapshot(broker(1), topics=(topic("__consumer_offsets", 50, internal=True),))
    assert evaluated(state) == ("healthy", [])


@pytest.mark.parametrize(
    ("state", "severity"), [("degraded", "warning"), ("unavailable", "critical")]
)
def test_failing_etcd_members_are_reported(state, severity):
    metadata = MetadataHealth("etcd", state, 3, 1, None, "etcd-1: no response")
    assert evaluated(snapshot(broker(1)), metadata) == ("degraded", [(severity, "etcd")])


def test_failed_listing_is_a_warning():
    state = snapshot(broker(1), listing_problem="no broker responds")
    assert evaluated(state) == ("degraded", [("warning", "Kafka")])


def test_etcd_without_endpoints_in_settings_is_unknown():
    result = metadata_health.evaluate(None, snapshot(broker(1), broker(2)))
    assert (result.kind, result.state) == ("etcd", "unknown")
    assert "KAFSCALE_ETCD_ENDPOINTS" in (result.problem or "")
    single = metadata_health.evaluate(None, snapshot(broker(1)))
    assert (single.kind, single.state, single.ready_count) == ("embedded", "healthy", 1)
    lost = metadata_health.evaluate(
        None, snapshot(broker(1, problems={"metadata": "changes do not arrive"}))
    )
    assert (lost.kind, lost.state) == ("embedded", "unavailable")
