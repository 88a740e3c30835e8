"""Addresses of clients, written in one way. Pure.

The law: two ways to write an address are the same afterwards. Java writes `0:0:0:0:0:0:0:1` where
others write `::1`, and a socket that serves both families shows IPv4 addresses as those of IPv6: a
rule that denies one of them must not be passed by another.
"""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address


@lru_cache(4_096)
def canonical(host: str) -> str:
    """An address as it is usually written; what is none stays as it is.

    >>> canonical("0:0:0:0:0:0:0:1"), canonical("::ffff:192.0.2.1"), canonical("fe80::1%eth0")
    ('::1', '192.0.2.1', 'fe80::1')
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)
