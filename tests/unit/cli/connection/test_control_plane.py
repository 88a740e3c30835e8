"""Where the control plane is, from the option or from the settings."""

import os

import pytest
import typer

from kafscale.cli.connection.control_plane import chosen


def test_the_option_wins_over_the_variable_and_the_variable_over_the_default(monkeypatch):
    for name in [name for name in os.environ if name.startswith("KAFSCALE_")]:
        monkeypatch.delenv(name)
    assert chosen("") == [("localhost", 9093)]
    monkeypatch.setenv("KAFSCALE_CONTROL_SERVERS", "a:1,b")
    assert chosen("") == [("a", 1), ("b", 9093)]
    assert chosen("c:3, [::1]") == [("c", 3), ("::1", 9093)]
    with pytest.raises(typer.BadParameter, match="expected host:port"):
        chosen("c:d")
