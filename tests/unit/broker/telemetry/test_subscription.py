"""Subscriptions: which clients they match.

Their errors are compared with Kafka's in tests/conformance/administration/test_telemetry.py.
"""

import pytest

from kafscale.broker.telemetry.subscription import Subscription

JAVA = {
    "client_id": "orders-1",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.1.1",
    "client_source_port": "50123",
}


def subscription(match):
    return Subscription.of("any", {"match": match})


@pytest.mark.parametrize(
    "match",
    [
        "",
        "client_software_name=apache-kafka-java",
        "client_software_name=apache.*, client_id=orders-[0-9]",
        "client_source_port=[0-9]+",
    ],
)
def test_client_matches(match):
    assert subscription(match).matches(JAVA)


@pytest.mark.parametrize(
    "match",
    [
        "client_software_name=apache",  # The whole value has to match.
        "client_software_name=apache.*,client_id=payments",
        "client_source_address=.+",
    ],
)
def test_client_does_not_match(match):
    assert not subscription(match).matches(JAVA)


def test_missing_configs_have_defaults():
    assert Subscription.of("any", {}) == Subscription("any", (), 300_000, {})
    given = Subscription.of("any", {"metrics": "a, b,,", "interval.ms": "100"})
    assert (given.metrics, given.interval_ms) == (("a", "b"), 100)
