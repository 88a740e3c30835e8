"""Which brokers a command asks: those of the option, or of the settings."""

import os

import pytest
import typer

from kafscale.cli.client_address import chosen


def test_the_option_wins_over_the_variable_and_the_variable_over_the_default(monkeypatch):
    for name in [name for name in os.environ if name.startswith("KAFSCALE_")]:
        monkeypatch.delenv(name)
    assert chosen("") == [("localhost", 9092)]
    monkeypatch.setenv("KAFSCALE_BOOTSTRAP_SERVERS", "a:1,b:2")
    assert chosen("") == [("a", 1), ("b", 2)]
    assert chosen("c:3, d") == [("c", 3), ("d", 9092)]
    with pytest.raises(typer.BadParameter, match="it takes host:port"):
        chosen("c:d")
