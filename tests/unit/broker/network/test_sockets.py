"""Binding sockets: one port for all addresses of a host, and all of them or none."""

import socket

import pytest

from kafscale.broker.network.sockets import address_of, bind_all, bind_host
from unit.broker.harness import run

# Every address in 127.0.0.0/8 is a loopback address.
ADDRESSES = [(socket.AF_INET, (f"127.0.0.{number}", 0)) for number in (1, 2, 3)]


def test_bind_all_uses_one_port_for_all_addresses():
    listeners = bind_all(ADDRESSES, 0, {})
    hosts, ports = zip(*map(address_of, listeners), strict=True)
    assert hosts == ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    assert len(set(ports)) == 1
    assert ports[0] > 0
    for listener in listeners:
        listener.close()


def test_bind_all_closes_all_sockets_if_one_fails():
    with socket.create_server(("127.0.0.2", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            bind_all(ADDRESSES, port, {})
        bind_all(ADDRESSES[:1], port, {})[0].close()


def test_bind_host_resolves_a_host_name():
    async def scenario():
        listeners = await bind_host("localhost", 0)
        assert listeners
        for listener in listeners:
            host, _ = address_of(listener)
            assert host in {"127.0.0.1", "::1"}
            assert not listener.getblocking()
            listener.close()

    run(scenario)
