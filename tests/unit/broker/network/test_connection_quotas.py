"""Connection quotas: total, per address and per second."""

import pytest

from kafscale.broker.network.connection_quotas import ConnectionQuotas, parse_overrides
from kafscale.errors import ConfigError


def accept(quotas, now):
    """The wait before the next connection; one is accepted if it is 0."""
    seconds = quotas.wait_seconds(now)
    if not seconds:
        quotas.consume_token(now)
    return seconds


def test_connection_quotas_limit_the_total():
    quotas = ConnectionQuotas(2)
    assert [quotas.try_acquire("a"), quotas.try_acquire("b"), quotas.try_acquire("c")] == [
        True,
        True,
        False,
    ]
    quotas.release("a")
    assert quotas.try_acquire("c")
    assert quotas.count == 2


def test_connection_quotas_limit_each_address():
    quotas = ConnectionQuotas(100, per_host_max=1, per_host_overrides={"busy": 3})
    assert [quotas.try_acquire("a"), quotas.try_acquire("a"), quotas.try_acquire("b")] == [
        True,
        False,
        True,
    ]
    assert [quotas.try_acquire("busy") for _ in range(4)] == [True, True, True, False]
    quotas.release("a")
    assert quotas.try_acquire("a")


def test_refused_connections_are_not_counted():
    quotas = ConnectionQuotas(100, per_host_max=1)
    quotas.try_acquire("a")
    for _ in range(10):
        quotas.try_acquire("a")
    assert quotas.count == 1
    quotas.release("a")
    assert quotas.count == 0


def test_connection_rate_above_the_limit_has_to_wait():
    quotas = ConnectionQuotas(100, rate_max=2)
    assert [accept(quotas, 10.0) for _ in range(3)] == [0.0, 0.0, 0.5]
    assert [accept(quotas, 10.5) for _ in range(2)] == [0.0, 0.5]


def test_wait_seconds_consumes_no_token():
    quotas = ConnectionQuotas(100, rate_max=2)
    assert {quotas.wait_seconds(10.0) for _ in range(10)} == {0.0}


def test_idle_time_accumulates_tokens_of_one_second_at_most():
    quotas = ConnectionQuotas(100, rate_max=2)
    accept(quotas, 0.0)
    assert [accept(quotas, 1000.0) for _ in range(3)] == [0.0, 0.0, 0.5]


def test_no_connection_rate_means_no_wait():
    assert ConnectionQuotas(1).wait_seconds(0.0) == 0.0


def test_override_without_an_address_is_a_config_error():
    with pytest.raises(ConfigError, match="maxConnectionsPerIpOverrides"):
        parse_overrides([":5"])


def test_limits_change_while_connections_are_open():
    quotas = ConnectionQuotas(2)
    assert quotas.try_acquire("a")
    assert quotas.try_acquire("a")
    quotas.configure(1, per_host_max=1, rate_max=2)
    assert quotas.is_full, "both stay open"
    quotas.consume_token(0.0)
    quotas.configure(3, per_host_max=1, per_host_overrides={"a": 3}, rate_max=2)
    assert quotas.allows_host("a")
    assert not quotas.is_full
    while not quotas.wait_seconds(0.0):
        quotas.consume_token(0.0)
    quotas.configure(3)
    assert quotas.wait_seconds(0.0) == 0.0
