"""Addresses of brokers, from the option or from the settings."""

import os

import pytest
import typer

from kafscale.cli.client_address import Address, chosen, parse


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("kafka-0.kafka:19092", ("kafka-0.kafka", 19092)),
        ("kafka", ("kafka", 9092)),
        ("[::1]:1", ("::1", 1)),
        ("[::1]", ("::1", 9092)),
    ],
)
def test_an_address_reads_as_people_write_it(text, address):
    assert parse(text) == address


@pytest.mark.parametrize("text", ["", ":9092", "a:b", "a:0", "a:65536", "http://a:1", "a b:1"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="it takes host:port"):
        parse(text)


def test_an_address_is_shown_so_that_it_can_be_read():
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("a", 9092)) == "a:9092"


def test_the_option_wins_over_the_variable_and_the_variable_over_the_default(monkeypatch):
    for name in [name for name in os.environ if name.startswith("KAFSCALE_")]:
        monkeypatch.delenv(name)
    assert chosen("") == [("localhost", 9092)]
    monkeypatch.setenv("KAFSCALE_BOOTSTRAP_SERVERS", "a:1,b:2")
    assert chosen("") == [("a", 1), ("b", 2)]
    assert chosen("c:3, d") == [("c", 3), ("d", 9092)]
    with pytest.raises(typer.BadParameter, match="it takes host:port"):
        chosen("c:d")
