"""The context of a request: the client's address, and the shutdown signal."""

import pytest

from kafscale.broker.requests.context import ClientInfo, ShutdownSignal


@pytest.mark.parametrize(
    ("host", "name"), [("10.0.0.1", "10.0.0.1:5000"), ("fe80::1", "[fe80::1]:5000")]
)
def test_client_info_formats_as_an_address(host, name):
    assert str(ClientInfo(host, 5000)) == name


def test_shutdown_signal_calls_each_callback_once():
    shutdown, woken = ShutdownSignal(), []
    shutdown.add_callback(lambda: woken.append("one"))
    shutdown.add_callback(lambda: woken.append("two"))
    assert not shutdown.is_set
    assert not woken
    shutdown.set()
    shutdown.set()
    assert shutdown.is_set
    assert sorted(woken) == ["one", "two"]


def test_shutdown_signal_does_not_call_removed_callbacks():
    shutdown, woken = ShutdownSignal(), []
    shutdown.add_callback(woken.clear)
    shutdown.remove_callback(woken.clear)
    woken.append("still here")
    shutdown.set()
    assert woken == ["still here"]


def test_shutdown_signal_calls_late_callbacks_at_once():
    shutdown, woken = ShutdownSignal(), []
    shutdown.set()
    shutdown.add_callback(lambda: woken.append("late"))
    assert woken == ["late"]
