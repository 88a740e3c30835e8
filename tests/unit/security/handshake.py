"""A TLS handshake between a client and a server in memory."""

import ssl
from typing import NamedTuple


class Pair(NamedTuple):
    """Both ends of a connection."""

    client: ssl.SSLObject
    server: ssl.SSLObject


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, name: str = "localhost") -> Pair:
    """Connect; whatever one of them does not like about the other is raised."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    pair = Pair(
        client.wrap_bio(down, up, server_hostname=name), server.wrap_bio(up, down, server_side=True)
    )
    waiting = list(pair)
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
    return pair


def exchange(pair: Pair) -> bytes:
    """What arrives of something that the client sends."""
    pair.client.write(b"hello")
    return pair.server.read(5)
