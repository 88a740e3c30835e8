"""The audit log: principal, address and operation; repetitions are suppressed."""

import pytest
from structlog.testing import capture_logs

from kafscale.broker.network.listener_config import Listener, SecurityProtocol
from kafscale.broker.requests.context import ClientInfo, RequestContext, ShutdownSignal
from kafscale.broker.security.audit import COUNTS_MAX, DENIALS_PER_SECOND_MAX, OTHERS, AuditLog
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.observability.metrics.counters import SecurityCounters
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.security.principal import Principal

CLIENT_FIELDS = {"principal": "User:alice", "client": "10.0.0.1:50000", "listener": "OUTSIDE"}


class AuditHarness:
    """An audit log with a manual clock, and its output."""

    def __init__(self):
        self.now_ms = 5_000
        self.counters = SecurityCounters()
        self.timers = []
        self.audit = AuditLog(
            self.counters, lambda: self.now_ms, lambda _seconds, call: self.timers.append(call)
        )

    def deny(self, name="orders", client=None):
        with capture_logs() as logs:
            self.audit.denied(context(client), Operation.WRITE, ResourceType.TOPIC, name)
        return logs

    def counts(self):
        """The counts of suppressed denials that are logged when the timers end."""
        with capture_logs() as logs:
            while self.timers:
                self.timers.pop()()
        assert {line["event"] for line in logs} <= {"repeated denials suppressed"}
        return {(line["address"], line["user"]): line["count"] for line in logs}


def alice(host="10.0.0.1"):
    return ClientInfo(
        host,
        50_000,
        principal=Principal("User:alice"),
        listener=Listener("OUTSIDE", SecurityProtocol.SASL_SSL),
    )


def context(client=None):
    return RequestContext(client or alice(), "app", PRODUCE, 9, 7, 0, 0.0, None, ShutdownSignal())


def test_denial_logs_principal_address_and_operation():
    harness = AuditHarness()
    assert harness.deny() == [
        {
            "event": "access denied",
            "log_level": "warning",
            "api": "Produce",
            "client_id": "app",
            "operation": "WRITE",
            "resource_type": "TOPIC",
            "resource": "orders",
            **CLIENT_FIELDS,
        }
    ]


def test_repeated_denials_are_logged_once_per_second_with_a_count():
    harness = AuditHarness()
    assert len(harness.deny()) == 1
    assert [harness.deny() for _ in range(10)] == [[]] * 10
    assert len(harness.deny("payments")) == 1, "another denial is logged"
    assert len(harness.deny(client=alice("10.0.0.2"))) == 1, "so is that of another client"
    harness.now_ms += 1_000
    assert len(harness.timers) == 1
    assert harness.counts() == {("10.0.0.1", "User:alice"): 10}
    assert [event["event"] for event in harness.deny()] == ["access denied"]
    assert harness.counts() == {}
    assert harness.counters.denied == 14, "all are counted"


def test_distinct_denials_per_second_are_bounded():
    harness = AuditHarness()
    lines = sum(
        len(harness.deny(f"topic-{number}")) for number in range(3 * DENIALS_PER_SECOND_MAX)
    )
    assert lines == DENIALS_PER_SECOND_MAX
    assert len(harness.audit._denials) == DENIALS_PER_SECOND_MAX
    assert harness.counts() == {("10.0.0.1", "User:alice"): 2 * DENIALS_PER_SECOND_MAX}


def test_suppressed_denials_are_counted_by_address_and_user():
    """A flood of wrong passwords names its sources, and stays a few lines."""
    harness = AuditHarness()
    hosts = [f"10.0.1.{number}" for number in range(COUNTS_MAX + 5)]
    for host in hosts:
        for _ in range(3):
            harness.audit.login_failed(alice(host), "PLAIN", "mallory", "wrong password")
    counts = harness.counts()
    assert counts["10.0.1.7", "mallory"] == 2
    assert len(counts) == COUNTS_MAX + 1
    assert counts[OTHERS] == 5 * 3


def test_change_logs_principal_and_details():
    with capture_logs() as logs:
        AuditHarness().audit.changed(context(), "topic created", topic="orders", partitions=3)
    assert logs == [
        {
            "event": "changed",
            "log_level": "info",
            "api": "Produce",
            "change": "topic created",
            "topic": "orders",
            "partitions": 3,
            **CLIENT_FIELDS,
        }
    ]


def test_every_change_is_logged():
    harness = AuditHarness()
    with capture_logs() as logs:
        for _ in range(100):
            harness.audit.changed(context(), "topic created", topic="orders")
    assert len(logs) == 100


def test_logins_are_logged_and_counted():
    harness = AuditHarness()
    with capture_logs() as logs:
        harness.audit.logged_in(alice(), "PLAIN")
        harness.audit.logged_in(alice(), "PLAIN")
    assert (
        logs
        == [{"event": "logged in", "log_level": "info", "mechanism": "PLAIN", **CLIENT_FIELDS}] * 2
    )
    assert harness.counters.logins == {("PLAIN", True): 2}


@pytest.mark.parametrize("attempts", [1, 500])
def test_failed_logins_are_logged_once_per_second_and_all_counted(attempts):
    harness = AuditHarness()
    client = ClientInfo("10.0.0.1", 50_000)
    with capture_logs() as logs:
        for _ in range(attempts):
            harness.audit.login_failed(client, "PLAIN", "mallory", "Invalid username or password")
    [event] = logs
    assert event["event"] == "login failed"
    assert event["principal"] == "User:ANONYMOUS", "a claimed name is not a principal"
    assert (event["client"], event["mechanism"]) == ("10.0.0.1:50000", "PLAIN")
    assert (event["claimed"], event["reason"]) == ("mallory", "Invalid username or password")
    assert harness.counters.logins == {("PLAIN", False): attempts}
