"""Which brokers are told of: those that are there, and those that should be."""

from kafscale.console.monitor.broker_presence import GONE_MS_MAX, Presence
from services.looks import broker, look


def told(presence, *brokers, at_ms, problem=None):
    seen = presence.take(look(*brokers, at_ms=at_ms, problem=problem))
    return {each.broker.id: (each.broker.state, each.at_ms) for each in seen}


def test_a_killed_broker_is_unreachable_then_gone_then_forgotten():
    presence = Presence()
    told(presence, broker(1), broker(2), at_ms=0)
    found = told(presence, broker(1), broker(2, "unreachable"), at_ms=2000)
    assert found == {1: ("ready", 2000), 2: ("unreachable", 0)}
    assert told(presence, broker(1), at_ms=4000) == {1: ("ready", 4000), 2: ("gone", 0)}
    assert presence.gone == [2]
    found = told(presence, broker(1), at_ms=GONE_MS_MAX + 1)
    assert found == {1: ("ready", GONE_MS_MAX + 1)}
    assert presence.gone == []


def test_one_that_is_back_is_gone_no_more():
    presence = Presence()
    told(presence, broker(1), broker(2), at_ms=0)
    told(presence, broker(1), broker(2, "unreachable"), at_ms=2000)
    told(presence, broker(1), at_ms=4000)
    assert told(presence, broker(1), broker(2), at_ms=6000)[2] == ("ready", 6000)
    assert presence.gone == []


def test_one_that_says_goodbye_is_not_missed():
    presence = Presence()
    told(presence, broker(1), broker(2), at_ms=0)
    assert told(presence, broker(1), at_ms=2000) == {1: ("ready", 2000)}


def test_one_that_was_drained_is_not_missed_even_if_it_did_not_answer_at_last():
    presence = Presence()
    told(presence, broker(1), broker(2, "draining", is_draining=True), at_ms=0)
    told(presence, broker(1), broker(2, "unreachable", is_draining=True), at_ms=2000)
    assert told(presence, broker(1), at_ms=4000) == {1: ("ready", 4000)}


def test_one_that_vanished_while_nobody_looked_may_have_been_killed():
    presence = Presence()
    told(presence, broker(1), broker(2), at_ms=0)
    assert told(presence, broker(1), at_ms=60_000)[2] == ("gone", 0)


def test_while_nobody_answers_all_are_unreachable():
    presence = Presence()
    told(presence, broker(1), broker(2), at_ms=0)
    found = told(presence, at_ms=2000, problem="connection refused")
    assert found == {1: ("unreachable", 0), 2: ("unreachable", 0)}
    # One of them is back; the other is missed.
    found = told(presence, broker(1), at_ms=4000)
    assert found == {1: ("ready", 4000), 2: ("gone", 0)}
