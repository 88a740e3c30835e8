"""Canonical notation of client IP addresses. Pure.

Java writes `0:0:0:0:0:0:0:1` where others write `::1`, and a dual-stack socket shows IPv4 addresses
as mapped IPv6 addresses. An ACL that denies one notation must not be bypassed by another.
"""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address


@lru_cache(4_096)
def canonical_ip(host: str) -> str:
    """Return the canonical notation of an IP address; other strings are returned unchanged.

    >>> canonical_ip("0:0:0:0:0:0:0:1"), canonical_ip("::ffff:192.0.2.1")
    ('::1', '192.0.2.1')
    >>> canonical_ip("fe80::1%eth0")
    'fe80::1'
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)
