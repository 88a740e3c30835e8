"""Addresses of brokers: `host:port`, `host`, `[::1]:9092`."""

import re
from typing import Final, NamedTuple

PORT_DEFAULT: Final = 9092
CONTROL_PORT_DEFAULT: Final = 9093
_ADDRESS: Final = re.compile(
    r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<host>[^\s:/@,]+))(?::(?P<port>\d+))?"
)


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str, port_default: int = PORT_DEFAULT) -> Address:
    """Parse an address.

    >>> parse("broker-0:19092"), parse("broker-0"), str(parse("[::1]:9092"))
    (Address(host='broker-0', port=19092), Address(host='broker-0', port=9092), '[::1]:9092')
    """
    match = _ADDRESS.fullmatch(text)
    port = int(match["port"] or port_default) if match else 0
    if match is None or not 0 < port < 65536:
        raise ValueError(f"{text!r} is not an address, expected host:port")
    return Address(match["bracketed"] or match["host"], port)
