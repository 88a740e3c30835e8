"""The TCP link: forwards bytes in order, and injects faults."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.base import Put
from kafscale.metadata.store.etcd import EtcdStore
from services.etcd_server import EtcdServer
from services.link_fault import Fault
from services.network import Network
from services.waiting import wait_until

LINK = "echo"


received: list[bytes] = []
"""What the server has received, in chunks."""


def echo(connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        while data := connection.recv(1 << 16):
            received.append(data)
            connection.sendall(data.upper())


@pytest.fixture
def echo_port() -> Iterator[int]:
    """A server that returns everything in upper case."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    thread = threading.Thread(target=echo, args=[server.accept()[0]])
                    thread.daemon = True
                    thread.start()

        threading.Thread(target=accept, daemon=True).start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def network(tmp_path) -> Iterator[Network]:
    with Network(tmp_path, seed=0) as running:
        yield running


@pytest.fixture
def port(network, echo_port) -> int:
    return network.link(LINK, echo_port, "tcp")


@pytest.fixture
def client(port) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connected:
        yield connected


def receive(client: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += client.recv(count - len(data))
    return data


def receives_nothing(client: socket.socket, seconds: float = 0.3) -> bool:
    client.settimeout(seconds)
    try:
        client.recv(1)
    except TimeoutError:
        return True
    finally:
        client.settimeout(5)
    return False


def test_link_forwards_bytes_in_both_directions(client):
    client.sendall(b"a" * 1_000_000)
    assert receive(client, 1_000_000) == b"A" * 1_000_000
    client.shutdown(socket.SHUT_WR)
    assert client.recv(1) == b""


@pytest.mark.parametrize("holds", ["requests", "responses", "everything"])
def test_held_bytes_are_delivered_later_and_in_order(client, network, holds):
    client.sendall(b"first ")
    assert receive(client, 6) == b"FIRST "
    network.set(LINK, Fault(holds=holds))
    client.sendall(b"second ")
    assert receives_nothing(client)
    client.sendall(b"third ")
    assert network.counts(LINK).held
    network.heal()
    assert receive(client, 13) == b"SECOND THIRD "


def test_delay_applies_to_requests(client, network):
    network.set(LINK, Fault(delay_ms_min=200, delay_ms_max=250))
    began = time.monotonic()
    client.sendall(b"data")
    receive(client, 4)
    assert time.monotonic() - began >= 0.2


def test_refusing_link_resets_connections_and_refuses_new_ones(client, network, port):
    network.set(LINK, Fault(refuses=True))
    with pytest.raises(ConnectionError):
        client.sendall(receive(client, 1))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    network.heal()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as again:
        again.sendall(b"back")
        assert receive(again, 4) == b"BACK"


def test_reset_closes_connections_and_accepts_new_ones(client, network, port):
    client.sendall(b"data")
    receive(client, 4)
    network.reset_connections(LINK)
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as again:
        again.sendall(b"data")
        assert receive(again, 4) == b"DATA"


def test_late_bytes_reach_the_server_after_the_client_got_a_reset(client, network, port):
    client.sendall(b"first")
    receive(client, 5)
    received.clear()
    network.set(LINK, Fault(late_share=1, late_ms_min=700, late_ms_max=800))
    client.sendall(b"late")
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    network.heal()
    network.reset_connections(LINK)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as again:
        again.sendall(b"retry")
        assert receive(again, 5) == b"RETRY"
    assert received == [b"retry"]
    wait_until(lambda: received == [b"retry", b"late"], "the late bytes")
    assert network.counts(LINK).late == 1
    wait_until(lambda: not network.counts(LINK).late_pending, "the end of the connection")


def test_late_request_to_etcd_is_executed_after_it_failed(tmp_path, network):
    with EtcdServer(tmp_path) as server:
        port = network.link("etcd", int(server.members[0].endpoint.rpartition(":")[2]), "tcp")

        async def put_late() -> None:
            store = EtcdStore(server.settings(endpoints=(f"127.0.0.1:{port}",)))
            try:
                assert await store.get("/key") is None
                network.set("etcd", Fault(late_share=1, late_ms_min=2000, late_ms_max=2000))
                await store.commit([], [Put("/key", b"late")])
            finally:
                await store.close()

        def stored() -> str:
            return server.control("get", "/key", "--print-value-only")

        with pytest.raises(StoreUnavailableError):
            asyncio.run(put_late())
        assert stored() == ""
        wait_until(lambda: stored() == "late\n", "the late value")


def test_fault_applies_to_one_link_only(network, echo_port, client):
    other = network.link("other", echo_port, "tcp")
    network.set(LINK, Fault(holds="everything"))
    with socket.create_connection(("127.0.0.1", other), timeout=5) as second:
        second.sendall(b"data")
        assert receive(second, 4) == b"DATA"
    client.sendall(b"data")
    assert receives_nothing(client)
