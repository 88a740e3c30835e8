"""Brokers that are live, unreachable or gone."""

from kafscale.console.monitor.broker_presence import GONE_MS_MAX, BrokerPresence
from services.cluster_snapshots import broker, snapshot


def states(presence, *brokers, at_ms, problem=None):
    seen = presence.update(snapshot(*brokers, at_ms=at_ms, problem=problem))
    return {each.broker.id: (each.broker.state, each.at_ms) for each in seen}


def test_killed_broker_is_unreachable_then_gone_then_forgotten():
    presence = BrokerPresence()
    states(presence, broker(1), broker(2), at_ms=0)
    result = states(presence, broker(1), broker(2, "unreachable"), at_ms=2000)
    assert result == {1: ("ready", 2000), 2: ("unreachable", 0)}
    assert states(presence, broker(1), at_ms=4000) == {1: ("ready", 4000), 2: ("gone", 0)}
    assert presence.gone == [2]
    result = states(presence, broker(1), at_ms=GONE_MS_MAX + 1)
    assert result == {1: ("ready", GONE_MS_MAX + 1)}
    assert presence.gone == []


def test_returning_broker_is_not_gone():
    presence = BrokerPresence()
    states(presence, broker(1), broker(2), at_ms=0)
    states(presence, broker(1), broker(2, "unreachable"), at_ms=2000)
    states(presence, broker(1), at_ms=4000)
    assert states(presence, broker(1), broker(2), at_ms=6000)[2] == ("ready", 6000)
    assert presence.gone == []


def test_deregistered_broker_is_forgotten():
    presence = BrokerPresence()
    states(presence, broker(1), broker(2), at_ms=0)
    assert states(presence, broker(1), at_ms=2000) == {1: ("ready", 2000)}


def test_drained_broker_is_forgotten_even_if_unreachable():
    presence = BrokerPresence()
    states(presence, broker(1), broker(2, "draining", is_draining=True), at_ms=0)
    states(presence, broker(1), broker(2, "unreachable", is_draining=True), at_ms=2000)
    assert states(presence, broker(1), at_ms=4000) == {1: ("ready", 4000)}


def test_broker_missing_after_a_poll_gap_is_gone():
    presence = BrokerPresence()
    states(presence, broker(1), broker(2), at_ms=0)
    assert states(presence, broker(1), at_ms=60_000)[2] == ("gone", 0)


def test_brokers_are_unreachable_while_no_broker_responds():
    presence = BrokerPresence()
    states(presence, broker(1), broker(2), at_ms=0)
    result = states(presence, at_ms=2000, problem="connection refused")
    assert result == {1: ("unreachable", 0), 2: ("unreachable", 0)}
    # One of them is back, the other is gone.
    result = states(presence, broker(1), at_ms=4000)
    assert result == {1: ("ready", 4000), 2: ("gone", 0)}
