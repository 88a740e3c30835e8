"""Addresses of brokers, as people write them."""

import pytest

from kafscale.net.host_port import Address, parse


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
    with pytest.raises(ValueError, match="expected host:port"):
        parse(text)


def test_an_address_is_shown_so_that_it_can_be_read():
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("a", 9092)) == "a:9092"
