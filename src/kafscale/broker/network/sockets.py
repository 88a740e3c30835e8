"""Binds listening sockets.

Invariant: all addresses of a host are bound to one port, also if the system chooses it; either all
of them are bound or none. Socket options are set here, before listening, because accepted sockets
inherit them, and because the receive window is scaled when a connection is established.
"""

import asyncio
import socket
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from kafscale.errors import OperatingError
from kafscale.net.address import ANY_ADDRESSES, Address


async def bind_host(
    host: str, port: int, *, send_buffer_bytes: int = 0, receive_buffer_bytes: int = 0
) -> list[socket.socket]:
    """Bind every address of `host`; port 0 takes a free one, size 0 the system's default."""
    try:
        resolved = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise OperatingError(f"cannot resolve {host} to listen on: {error.strerror}") from None
    options = {
        (socket.SOL_SOCKET, socket.SO_REUSEADDR): 1,
        (socket.IPPROTO_TCP, socket.TCP_NODELAY): 1,
        (socket.SOL_SOCKET, socket.SO_SNDBUF): send_buffer_bytes,
        (socket.SOL_SOCKET, socket.SO_RCVBUF): receive_buffer_bytes,
    }
    addresses = dict.fromkeys((family, address) for family, _, _, _, address in resolved)
    try:
        return bind_all(addresses, port, {name: value for name, value in options.items() if value})
    except OSError as error:
        raise OperatingError(
            f"cannot listen on {host}:{port} ({error.strerror}); choose another port, or stop the"
            " process that uses it"
        ) from None


def bind_all(
    addresses: Iterable[tuple[int, Any]], port: int, options: Mapping[tuple[int, int], int]
) -> list[socket.socket]:
    """Bind addresses of any families, all to the port that the first one gets."""
    listeners: list[socket.socket] = []
    try:
        for family, (host, _, *rest) in addresses:
            listener = socket.socket(family, socket.SOCK_STREAM)
            listeners.append(listener)
            listener.setblocking(False)
            for (level, name), value in options.items():
                listener.setsockopt(level, name, value)
            if family == socket.AF_INET6:
                # An IPv4 address has a socket of its own.
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((host, port, *rest))
            _, port = address_of(listener)
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners


@cache  # Finding our name may need a DNS query, and every listener needs it.
def reachable_host(host: str) -> str:
    """A host that others can connect to: the host name, if we listen on all addresses."""
    return socket.getfqdn() if host in ANY_ADDRESSES else host


def address_of(listener: socket.socket) -> Address:
    return Address(*listener.getsockname()[:2])
