"""Listening: one port for all addresses of a host, and all of them or none."""

import socket

import pytest

from kafscale.broker.network.sockets import address_of, bind_all, open_listeners
from unit.broker.harness import run

# Every address below 127 is this machine's.
ADDRESSES = [(socket.AF_INET, (f"127.0.0.{number}", 0)) for number in (1, 2, 3)]


def test_all_addresses_share_the_port_that_the_first_one_got():
    listeners = bind_all(ADDRESSES, 0, {})
    hosts, ports = zip(*map(address_of, listeners), strict=True)
    assert hosts == ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    assert len(set(ports)) == 1
    assert ports[0] > 0
    for listener in listeners:
        listener.close()


def test_where_one_address_is_taken_none_is_kept():
    with socket.create_server(("127.0.0.2", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            bind_all(ADDRESSES, port, {})
        bind_all(ADDRESSES[:1], port, {})[0].close()


def test_a_host_is_found_by_its_name():
    async def story():
        listeners = await open_listeners("localhost", 0)
        assert listeners
        for listener in listeners:
            host, _ = address_of(listener)
            assert host in {"127.0.0.1", "::1"}
            assert not listener.getblocking()
            listener.close()

    run(story)
