"""Addresses of the control plane, from the option and the settings."""

import os

import pytest
import typer

from kafscale.cli.connection.control_plane import control_addresses


def test_control_option_overrides_the_settings(monkeypatch):
    for name in [name for name in os.environ if name.startswith("KAFSCALE_")]:
        monkeypatch.delenv(name)
    assert control_addresses("") == [("localhost", 9093)]
    monkeypatch.setenv("KAFSCALE_CONTROL_SERVERS", "a:1,b")
    assert control_addresses("") == [("a", 1), ("b", 9093)]
    assert control_addresses("c:3, [::1]") == [("c", 3), ("::1", 9093)]
    with pytest.raises(typer.BadParameter, match="expected host:port"):
        control_addresses("c:d")
