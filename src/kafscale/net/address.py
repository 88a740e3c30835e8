"""Addresses of brokers: `host:port`, `host`, `[::1]:9092`; and IP addresses of clients. Pure."""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

PORT_DEFAULT: Final = 9092
CONTROL_PORT_DEFAULT: Final = 9095
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - a server on it listens on all addresses.
ANY_ADDRESSES: Final = frozenset({ANY_ADDRESS, "::"})
LOOPBACK: Final = "127.0.0.1"
_ADDRESS: Final = re.compile(
    r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<host>[^\s:/@,]+))(?::(?P<port>\d+))?"
)

_SERVER: Final = re.compile(
    r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+)\]|(?P<host>[\w.-]+))(?::(?P<port>\d{1,5}))?(?:/.*)?",
    re.ASCII,
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


def parse_ip(text: str) -> IPv4Address | IPv6Address:
    """Parse an IP address; one that a dual-stack socket shows as mapped IPv6 becomes IPv4."""
    found = ip_address(text)
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def is_ip(host: str) -> bool:
    """Whether a host is an IP address.

    >>> is_ip("127.0.0.1"), is_ip("::1"), is_ip("127.0.0.1.example.com")
    (True, True, False)
    """
    try:
        parse_ip(host.partition("%")[0])
    except ValueError:
        return False
    return True


def is_server(text: str) -> bool:
    """Whether a server can have this host, with or without a port; a path is ignored.

    >>> [is_server(text) for text in ("etcd-0:2379", "[::1]:9000/path", "10.0.0.1", "s3.local.")]
    [True, True, True, True]
    >>> [is_server(text) for text in ("a:99999", "a:b", "[::g]:1", "10.0.0.999", "a b", "", ":1")]
    [False, False, False, False, False, False, False]
    """
    match = _SERVER.fullmatch(text)
    if match is None or int(match["port"] or 1) not in range(1, 65536):
        return False
    host = match["bracketed"] or match["host"]
    # A name that ends with a number can only be an IPv4 address.
    is_address = bool(match["bracketed"]) or host.rpartition(".")[2].isdecimal()
    return is_ip(host) or not is_address


def is_loopback(host: str) -> bool:
    """Whether only programs on the same machine can connect to a server on this host.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("b-0")
    (True, True, True, False)
    """
    try:
        return parse_ip(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@lru_cache(4_096)
def canonical_ip(host: str) -> str:
    """Return the canonical notation of an IP address; other strings are returned unchanged.

    Java writes `0:0:0:0:0:0:0:1` where others write `::1`. An ACL that denies one notation must not
    be bypassed by another.

    >>> canonical_ip("0:0:0:0:0:0:0:1"), canonical_ip("::ffff:192.0.2.1")
    ('::1', '192.0.2.1')
    >>> canonical_ip("fe80::1%eth0")
    'fe80::1'
    """
    try:
        return str(parse_ip(host.partition("%")[0]))
    except ValueError:
        return host
