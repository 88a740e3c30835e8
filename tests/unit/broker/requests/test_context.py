"""The context of a request: clients have readable names, and a drain wakes those who wait."""

import pytest

from kafscale.broker.requests.context import ClientInfo, Drain


@pytest.mark.parametrize(
    ("host", "name"), [("10.0.0.1", "10.0.0.1:5000"), ("fe80::1", "[fe80::1]:5000")]
)
def test_a_client_reads_as_an_address(host, name):
    assert str(ClientInfo(host, 5000)) == name


def test_a_drain_wakes_everybody_who_watches_once():
    drain, woken = Drain(), []
    drain.watch(lambda: woken.append("one"))
    drain.watch(lambda: woken.append("two"))
    assert not drain.begun
    assert not woken
    drain.begin()
    drain.begin()
    assert drain.begun
    assert sorted(woken) == ["one", "two"]


def test_a_drain_does_not_wake_those_who_have_gone():
    drain, woken = Drain(), []
    drain.watch(woken.clear)
    drain.unwatch(woken.clear)
    woken.append("still here")
    drain.begin()
    assert woken == ["still here"]


def test_whoever_comes_late_is_woken_at_once():
    drain, woken = Drain(), []
    drain.begin()
    drain.watch(lambda: woken.append("late"))
    assert woken == ["late"]
