"""Metrics over HTTP, from servers that mean well and others."""

import asyncio
import socket
import threading
from contextlib import suppress

import pytest

from kafscale.admin.cluster.metrics import ScrapeError, scrape
from kafscale.net.host_port import Address


def scraped(answer, seconds_max=5.0):
    """What is made of a server that answers so, whatever it is asked, and then hangs up.

    One that has no answer waits until nobody asks any more.
    """

    def serve():
        client, _ = server.accept()
        with client, suppress(ConnectionError):
            client.recv(8192)
            if answer:
                client.sendall(answer)
            else:
                client.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            return asyncio.run(scrape(Address(*server.getsockname()), seconds_max))
        finally:
            thread.join()


def test_a_body_is_taken_as_long_as_it_says():
    assert scraped(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nx 1\n, and more") == "x 1\n"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", "no size that we take"),
        (b"HTTP/1.1 200 OK\r\n\r\nx 1\n", "no size that we take"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx 1\n", "tells no metrics"),
        (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", "tells no metrics"),
        (b"x" * 100_000, "tells no metrics"),
    ],
)
def test_anything_else_is_told_in_a_sentence(answer, why):
    with pytest.raises(ScrapeError, match=why):
        scraped(answer)


def test_nobody_is_waited_for():
    with pytest.raises(ScrapeError, match=r"within 0\.1 s"):
        scraped(b"", seconds_max=0.1)


def test_where_nobody_listens_there_are_none():
    with pytest.raises(ScrapeError, match="tells no metrics"):
        asyncio.run(scrape(Address("127.0.0.1", 1), 5.0))
