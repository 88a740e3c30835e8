"""Client instances: what they are subscribed to, and how many are remembered.

What they may do when is compared with Kafka in tests/conformance/administration/test_telemetry.py.
"""

import pytest

from kafscale.broker.telemetry.clients import TelemetryClients
from kafscale.broker.telemetry.subscription import Subscription
from kafscale.errors import ThrottledError

A, B = b"a" * 16, b"b" * 16
NOW_MS = 1_750_000_000_000


def subscription(name, **configs):
    return Subscription.of(name, {key.replace("_", "."): value for key, value in configs.items()})


ALL = subscription("all", metrics="*", interval_ms="60000")
SOME = subscription("some", metrics="b,a", interval_ms="1000", match="client_id=a.*")


def test_matching_subscriptions_are_united():
    known = TelemetryClients()
    some = known.instance(A, {"client_id": "a1"}, [SOME], 1)
    assert (some.metrics, some.interval_ms) == (("a", "b"), 1000)
    both = known.instance(B, {"client_id": "a1"}, [SOME, ALL], 1)
    assert (both.metrics, both.interval_ms) == (("*",), 1000)
    neither = known.instance(b"c" * 16, {"client_id": "b"}, [SOME], 1)
    assert (neither.metrics, neither.interval_ms) == ((), 300_000)


def test_every_broker_computes_the_same_subscription_id():
    one, other = TelemetryClients(), TelemetryClients()
    expected = one.instance(A, {}, [ALL], 1).subscription_id
    assert other.instance(A, {}, [ALL], 7).subscription_id == expected
    assert one.instance(B, {}, [ALL], 1).subscription_id != expected
    assert one.instance(A, {}, [], 2).subscription_id != expected
    assert -(2**31) <= expected < 2**31


def test_change_of_subscriptions_lets_clients_ask_at_once():
    known = TelemetryClients()
    known.instance(A, {}, [ALL], 1).ask(NOW_MS)
    with pytest.raises(ThrottledError):
        known.instance(A, {}, [ALL], 1).ask(NOW_MS + 59_999)
    known.instance(A, {}, [], 2).ask(NOW_MS + 59_999)


def test_instance_that_was_silent_longest_is_forgotten():
    known = TelemetryClients(instances_max=2)
    first = known.instance(A, {}, [], 1)
    known.instance(B, {}, [], 1)
    assert known.instance(A, {}, [], 1) is first
    known.instance(b"c" * 16, {}, [], 1)
    assert len(known) == 2
    assert known.instance(A, {}, [], 1) is first
