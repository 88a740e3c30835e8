"""The audit log: who, from where, what; no secrets, and no floods."""

import pytest
from structlog.testing import capture_logs

from kafscale.broker.network.listener_config import Listener, Protocol
from kafscale.broker.requests.context import ClientInfo, Drain, RequestContext
from kafscale.broker.security.audit import KINDS_COUNT_MAX, Audit
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.observability.metrics.counters import SecurityCounters
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.security.principal import Principal

WHO = {"principal": "User:alice", "client": "10.0.0.1:50000", "listener": "OUTSIDE"}


class Trail:
    """An audit at a time that the test moves, and what it has written."""

    def __init__(self):
        self.now_ms = 5_000
        self.traffic = SecurityCounters()
        self.audit = Audit(self.traffic, lambda: self.now_ms)

    def deny(self, name="orders", client=None):
        with capture_logs() as logs:
            self.audit.denied(context(client), Operation.WRITE, ResourceType.TOPIC, name)
        return logs


def alice(host="10.0.0.1"):
    return ClientInfo(
        host,
        50_000,
        identity=Principal("User:alice"),
        listener=Listener("OUTSIDE", Protocol.SASL_SSL),
    )


def context(client=None):
    return RequestContext(client or alice(), "app", PRODUCE, 9, 7, 0, 0.0, None, Drain())


def test_a_denial_says_who_from_where_and_what():
    trail = Trail()
    assert trail.deny() == [
        {
            "event": "access denied",
            "log_level": "warning",
            "api": "Produce",
            "client_id": "app",
            "operation": "WRITE",
            "resource_type": "TOPIC",
            "resource": "orders",
            **WHO,
        }
    ]


def test_the_same_denial_is_told_once_a_second_and_how_often_it_was_left_out():
    trail = Trail()
    assert len(trail.deny()) == 1
    assert [trail.deny() for _ in range(10)] == [[]] * 10
    assert len(trail.deny("payments")) == 1, "another one is told"
    assert len(trail.deny(client=alice("10.0.0.2"))) == 1, "so is that of another client"
    trail.now_ms += 1_000
    summary, again = trail.deny()
    assert (summary["event"], summary["count"]) == ("repeated denials left out", 10)
    assert again["event"] == "access denied"
    trail.now_ms += 1_000
    assert [event["event"] for event in trail.deny()] == ["access denied"]
    assert trail.traffic.denied == 15, "all are counted"


def test_denials_of_ever_new_things_do_not_fill_the_log_nor_the_memory():
    trail = Trail()
    lines = sum(len(trail.deny(f"topic-{number}")) for number in range(3 * KINDS_COUNT_MAX))
    assert lines == KINDS_COUNT_MAX
    assert len(trail.audit._denials) == KINDS_COUNT_MAX
    trail.now_ms += 1_000
    summary, _ = trail.deny()
    assert summary["count"] == 2 * KINDS_COUNT_MAX


def test_a_change_says_who_has_changed_what_to_what():
    with capture_logs() as logs:
        Trail().audit.changed(context(), "topic created", topic="orders", partitions=3)
    assert logs == [
        {
            "event": "changed",
            "log_level": "info",
            "api": "Produce",
            "change": "topic created",
            "topic": "orders",
            "partitions": 3,
            **WHO,
        }
    ]


def test_changes_are_all_told_however_many_there_are():
    trail = Trail()
    with capture_logs() as logs:
        for _ in range(100):
            trail.audit.changed(context(), "topic created", topic="orders")
    assert len(logs) == 100


def test_logins_are_told_and_counted():
    trail = Trail()
    with capture_logs() as logs:
        trail.audit.logged_in(alice(), "PLAIN")
        trail.audit.logged_in(alice(), "PLAIN")
    assert logs == [{"event": "logged in", "log_level": "info", "mechanism": "PLAIN", **WHO}] * 2
    assert trail.traffic.logins == {("PLAIN", True): 2}


@pytest.mark.parametrize("attempts", [1, 500])
def test_failed_logins_are_told_once_a_second_and_all_counted(attempts):
    trail = Trail()
    client = ClientInfo("10.0.0.1", 50_000)
    with capture_logs() as logs:
        for _ in range(attempts):
            trail.audit.login_failed(client, "PLAIN", "mallory", "Invalid username or password")
    [event] = logs
    assert event["event"] == "login failed"
    assert event["principal"] == "User:ANONYMOUS", "nobody is who they only claim to be"
    assert (event["client"], event["mechanism"]) == ("10.0.0.1:50000", "PLAIN")
    assert (event["claimed"], event["reason"]) == ("mallory", "Invalid username or password")
    assert trail.traffic.logins == {("PLAIN", False): attempts}
