"""Parsing and formatting of broker addresses."""

import pytest

from kafscale.net.address import Address, parse


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("kafka-0.kafka:19092", ("kafka-0.kafka", 19092)),
        ("kafka", ("kafka", 9092)),
        ("[::1]:1", ("::1", 1)),
        ("[::1]", ("::1", 9092)),
    ],
)
def test_valid_addresses_are_parsed(text, address):
    assert parse(text) == address


@pytest.mark.parametrize("text", ["", ":9092", "a:b", "a:0", "a:65536", "http://a:1", "a b:1"])
def test_invalid_addresses_are_rejected(text):
    with pytest.raises(ValueError, match="expected host:port"):
        parse(text)


def test_formatted_address_parses_to_the_same():
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("a", 9092)) == "a:9092"
