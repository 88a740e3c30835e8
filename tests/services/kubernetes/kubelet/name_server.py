"""The DNS server of the cluster: answers queries for IPv4 addresses, over UDP.

Answers have a TTL of 0, because pods come and go. Names outside of the cluster do not exist, since
no other network is reachable.
"""

import asyncio
import ipaddress
import struct
from typing import Any

from services.kubernetes.kubelet.dns_zone import Zone

PORT = 53
_HEADER = struct.Struct(">HHHHHH")
_QUESTION = struct.Struct(">HH")
_ANSWER = struct.Struct(">HHHIH4s")
_TYPE_ADDRESS = 1
_CLASS_INTERNET = 1
_POINTER_TO_QUESTION = 0xC000 | _HEADER.size
_FLAGS = 0x8580
"""An authoritative response, with recursion desired and available."""
_NO_SUCH_NAME = 3


def answer(query: bytes, zone: Zone) -> bytes:
    """The response to a query.

    >>> query = bytes.fromhex("00010100000100000000000001610162000001 0001".replace(" ", ""))
    >>> answer(query, {"a.b": ("10.0.0.1",)})[-4:]
    b'\\n\\x00\\x00\\x01'
    >>> answer(query, {})[3] & 0xF == _NO_SUCH_NAME
    True
    """
    number, *_ = _HEADER.unpack_from(query)
    name, end = _name(query, _HEADER.size)
    kind, _ = _QUESTION.unpack_from(query, end)
    question = query[_HEADER.size : end + _QUESTION.size]
    known = zone.get(name)
    addresses = (known or ()) if kind == _TYPE_ADDRESS else ()
    flags = _FLAGS if known is not None else _FLAGS | _NO_SUCH_NAME
    records = [
        _ANSWER.pack(
            _POINTER_TO_QUESTION,
            _TYPE_ADDRESS,
            _CLASS_INTERNET,
            0,
            4,
            ipaddress.IPv4Address(address).packed,
        )
        for address in addresses
    ]
    header = _HEADER.pack(number, flags, 1, len(records), 0, 0)
    return header + question + b"".join(records)


def _name(query: bytes, position: int) -> tuple[str, int]:
    """The name at a position, and the position after it."""
    labels = []
    while size := query[position]:
        labels.append(query[position + 1 : position + 1 + size].decode().lower())
        position += 1 + size
    return ".".join(labels), position + 1


class NameServer(asyncio.DatagramProtocol):
    """Answers from the current zone."""

    def __init__(self) -> None:
        self.zone: Zone = {}
        self._transport: asyncio.DatagramTransport | None = None

    async def open(self, address: str) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: self, local_addr=(address, PORT))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, address: tuple[str | Any, int]) -> None:
        assert self._transport is not None
        self._transport.sendto(answer(data, self.zone), address)
