"""Opens the sockets on which clients are awaited.

The law: all addresses of a host are served on one port, also where the port is chosen by the
system; either all of them are opened or none. Options are set here, before listening, because
accepted sockets inherit them, and because a receive window is scaled when a connection begins.
"""

import asyncio
import socket
from collections.abc import Iterable, Mapping
from typing import Any

from kafscale.errors import OperatingError

Address = tuple[str, int]


async def open_listeners(
    host: str, port: int, *, send_buffer_bytes: int = 0, receive_buffer_bytes: int = 0
) -> list[socket.socket]:
    """Bind every address of `host`; port 0 takes a free one, a size of 0 is left to the system."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise OperatingError(f"{host} is no address to listen on: {error.strerror}") from None
    options = {
        (socket.SOL_SOCKET, socket.SO_REUSEADDR): 1,
        (socket.IPPROTO_TCP, socket.TCP_NODELAY): 1,
        (socket.SOL_SOCKET, socket.SO_SNDBUF): send_buffer_bytes,
        (socket.SOL_SOCKET, socket.SO_RCVBUF): receive_buffer_bytes,
    }
    addresses = dict.fromkeys((family, address) for family, _, _, _, address in found)
    try:
        return bind_all(addresses, port, {name: value for name, value in options.items() if value})
    except OSError as error:
        raise OperatingError(
            f"{host}:{port} cannot be listened on ({error.strerror}); choose another port, or stop"
            " what has this one"
        ) from None


def bind_all(
    addresses: Iterable[tuple[int, Any]], port: int, options: Mapping[tuple[int, int], int]
) -> list[socket.socket]:
    """Bind addresses of any families, all at the port that the first one gets."""
    listeners: list[socket.socket] = []
    try:
        for family, (host, _, *rest) in addresses:
            listener = socket.socket(family, socket.SOCK_STREAM)
            listeners.append(listener)
            listener.setblocking(False)
            for (level, name), value in options.items():
                listener.setsockopt(level, name, value)
            if family == socket.AF_INET6:
                # An IPv4 address has a listener of its own.
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((host, port, *rest))
            _, port = address_of(listener)
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def address_of(listener: socket.socket) -> Address:
    host, port = listener.getsockname()[:2]
    return host, port
