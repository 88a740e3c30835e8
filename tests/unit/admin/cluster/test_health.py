"""How a cluster does, and why: each thing that may be wrong, by itself."""

import msgspec
import pytest

from kafscale.admin.cluster.health import health, store_state
from kafscale.admin.cluster.metadata_health import MetadataLook, metadata_look
from kafscale.admin.topics.usage import topic_figures
from services.looks import broker, look, partition, topic

EMBEDDED = MetadataLook("embedded", "healthy", 1, 1, None, None)


def judged(seen, metadata=EMBEDDED, gone=()):
    found = health(seen, topic_figures(seen), metadata, gone)
    return found.state, [(each.severity, each.subject) for each in found.reasons]


def test_a_cluster_of_which_nothing_is_wrong_is_healthy():
    seen = look(broker(1, partitions=(partition("orders", 0),)), topics=(topic("orders"),))
    assert judged(seen) == ("healthy", [])


def test_a_cluster_that_does_not_answer_is_down_whatever_else():
    seen = look(problem="connection refused", topics=(topic("orders"),))
    found = health(seen, topic_figures(seen), EMBEDDED)
    assert found.state == "down"
    assert [each.sentence for each in found.reasons] == ["No broker answers: connection refused"]


def test_a_cluster_whose_brokers_all_serve_nobody_is_down():
    seen = look(broker(1, "not ready", problems={"object storage": "unavailable"}))
    assert judged(seen) == ("down", [("critical", "broker 1")])


@pytest.mark.parametrize("state", ["unreachable", "not ready"])
def test_a_broker_in_trouble_is_critical_and_says_why(state):
    seen = look(broker(1), broker(2, state, problems={"lease": "not proven"}))
    found = health(seen, {}, EMBEDDED)
    assert found.state == "degraded"
    (reason,) = found.reasons
    assert (reason.severity, reason.subject) == ("critical", "broker 2")
    assert "lease: not proven" in reason.sentence


def test_a_broker_that_is_gone_is_critical_and_one_that_drains_is_not():
    seen = look(broker(1), broker(2, "draining", is_draining=True))
    expected = [("critical", "broker 3"), ("warning", "broker 2")]
    assert judged(seen, gone=[3]) == ("degraded", expected)


def test_nobody_in_charge_is_critical():
    assert judged(look(broker(1), controller=None)) == ("degraded", [("critical", "cluster")])


def test_metrics_that_are_missing_are_told_only_where_they_could_be_had():
    silent = msgspec.structs.replace(broker(1), figures_problem="it tells no metrics")
    assert judged(look(silent)) == ("degraded", [("warning", "broker 1")])
    assert judged(look(broker(1))) == ("healthy", [])


@pytest.mark.parametrize(
    ("states", "worst", "severity"),
    [
        (["healthy", "degraded"], "degraded", "warning"),
        (["unavailable", "degraded", None], "unavailable", "critical"),
    ],
)
def test_the_store_is_as_bad_as_the_worst_that_a_broker_sees(states, worst, severity):
    brokers = [broker(number, store_health=each) for number, each in enumerate(states, 1)]
    assert store_state(brokers) == worst
    assert judged(look(*brokers)) == ("degraded", [(severity, "S3")])


def test_what_many_topics_have_in_common_is_told_once():
    seen = look(broker(1), topics=tuple(topic(f"t{number}") for number in range(9)))
    _, reasons = judged(seen)
    assert reasons == [*(("critical", f"topic t{n}") for n in range(5)), ("critical", "topics")]


def test_internal_topics_have_leaders_that_serve_no_records():
    seen = look(broker(1), topics=(topic("__consumer_offsets", 50, internal=True),))
    assert judged(seen) == ("healthy", [])


@pytest.mark.parametrize(
    ("state", "severity"), [("degraded", "warning"), ("unavailable", "critical")]
)
def test_members_of_etcd_in_trouble_are_told(state, severity):
    metadata = MetadataLook("etcd", state, 3, 1, None, "etcd-1: it sleeps")
    assert judged(look(broker(1)), metadata) == ("degraded", [(severity, "etcd")])


def test_topics_that_cannot_be_listed_are_a_warning():
    seen = look(broker(1), listing_problem="no broker answers")
    assert judged(seen) == ("degraded", [("warning", "Kafka")])


def test_nothing_is_claimed_of_an_etcd_that_the_settings_do_not_name():
    found = metadata_look(None, look(broker(1), broker(2)))
    assert (found.kind, found.state) == ("etcd", "unknown")
    assert "KAFSCALE_ETCD_ENDPOINTS" in (found.problem or "")
    alone = metadata_look(None, look(broker(1)))
    assert (alone.kind, alone.state, alone.ready_count) == ("embedded", "healthy", 1)
    lost = metadata_look(None, look(broker(1, problems={"metadata": "changes do not arrive"})))
    assert (lost.kind, lost.state) == ("embedded", "unavailable")
