"""Limits failed logins: a pure state machine; the time is passed in.

Only failures count. An address with too many failures has to wait until its oldest one leaves the
window. All addresses have to wait if the total is too high. Both tables are bounded. IPv6 addresses
are counted by their /64 network, as one machine may own all of it.
"""

import ipaddress
import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final

from kafscale.net.address import parse_ip

WINDOW_SECONDS: Final = 60.0
FAILURES_MAX: Final = 5
"""Failures per address and window."""
FAILURES_TOTAL_MAX: Final = 100
"""Failures of all addresses per window; limits guessing from many addresses."""
ADDRESSES_MAX: Final = 10_000


@dataclass
class LoginThrottle:
    """Recent failed logins."""

    _by_address: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    _all: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES_TOTAL_MAX))

    def wait_seconds(self, address: str, now: float) -> int:
        """How long to wait before the next attempt; 0: not at all."""
        own = self._by_address.get(throttle_key(address), deque())
        waits = (
            failures[0] + WINDOW_SECONDS - now
            for failures, limit in ((own, FAILURES_MAX), (self._all, FAILURES_TOTAL_MAX))
            if len(failures) >= limit
        )
        return max(math.ceil(max(waits, default=0.0)), 0)

    def failed(self, address: str, now: float) -> None:
        key = throttle_key(address)
        self._by_address.setdefault(key, deque(maxlen=FAILURES_MAX)).append(now)
        self._by_address.move_to_end(key)
        self._all.append(now)
        while len(self._by_address) > ADDRESSES_MAX:
            self._by_address.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """Forget the failures of an address after a successful login."""
        self._by_address.pop(throttle_key(address), None)


def throttle_key(address: str) -> str:
    """The key under which an address is counted.

    >>> throttle_key("10.0.0.7"), throttle_key("2001:db8:1:2:3:4:5:6")
    ('10.0.0.7', '2001:db8:1:2::/64')
    >>> throttle_key("::ffff:10.0.0.7"), throttle_key("")
    ('10.0.0.7', '')
    """
    try:
        parsed = parse_ip(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
