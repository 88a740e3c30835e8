"""The link that knows only bytes: what comes through, when, and in what order."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from services.link_fault import Fault
from services.network import Network

LINK = "echo"


def response(connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        while data := connection.recv(1 << 16):
            connection.sendall(data.upper())


@pytest.fixture
def echo_port() -> Iterator[int]:
    """A server that answers in capitals."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    thread = threading.Thread(target=response, args=[server.accept()[0]])
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


def is_silent(client: socket.socket, seconds: float = 0.3) -> bool:
    client.settimeout(seconds)
    try:
        client.recv(1)
    except TimeoutError:
        return True
    finally:
        client.settimeout(5)
    return False


def test_bytes_go_through_both_ways(client):
    client.sendall(b"a" * 1_000_000)
    assert receive(client, 1_000_000) == b"A" * 1_000_000
    client.shutdown(socket.SHUT_WR)
    assert client.recv(1) == b""


@pytest.mark.parametrize("holds", ["requests", "answers", "everything"])
def test_what_is_held_comes_later_and_in_order(client, network, holds):
    client.sendall(b"first ")
    assert receive(client, 6) == b"FIRST "
    network.set(LINK, Fault(holds=holds))
    client.sendall(b"second ")
    assert is_silent(client)
    client.sendall(b"third ")
    assert network.carried(LINK).held
    network.heal()
    assert receive(client, 13) == b"SECOND THIRD "


def test_a_delay_is_that_of_the_way_to_the_server(client, network):
    network.set(LINK, Fault(delay_ms_min=200, delay_ms_max=250))
    began = time.monotonic()
    client.sendall(b"data")
    receive(client, 4)
    assert time.monotonic() - began >= 0.2


def test_refusing_breaks_connections_off_and_lets_no_new_ones_in(client, network, port):
    network.set(LINK, Fault(refuses=True))
    with pytest.raises(ConnectionError):
        client.sendall(receive(client, 1))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    network.heal()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as again:
        again.sendall(b"back")
        assert receive(again, 4) == b"BACK"


def test_connections_can_be_reset_while_new_ones_are_welcome(client, network, port):
    client.sendall(b"data")
    receive(client, 4)
    network.break_off(LINK)
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as again:
        again.sendall(b"data")
        assert receive(again, 4) == b"DATA"


def test_links_are_told_apart(network, echo_port, client):
    other = network.link("other", echo_port, "tcp")
    network.set(LINK, Fault(holds="everything"))
    with socket.create_connection(("127.0.0.1", other), timeout=5) as second:
        second.sendall(b"data")
        assert receive(second, 4) == b"DATA"
    client.sendall(b"data")
    assert is_silent(client)
