"""How often somebody may try to sign in: a pure state machine, to which time is passed in.

The law: failures count, successes do not. An address that has failed too often waits until its
oldest failure is old enough, and so does everybody when all addresses together have failed too
often; both tables are bounded, however many addresses there are. Addresses of IPv6 count by their
network of 64 bits, of which one machine may have all.
"""

import ipaddress
import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final

WINDOW_SECONDS: Final = 60.0
FAILURES_MAX: Final = 5
"""How often an address may fail in a window."""
FAILURES_TOTAL_MAX: Final = 100
"""How often all together may: it bounds guessing from many addresses."""
ADDRESSES_MAX: Final = 10_000


@dataclass
class Throttle:
    """Who has failed lately."""

    _by_place: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    _all: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES_TOTAL_MAX))

    def wait_seconds(self, address: str, now: float) -> int:
        """How long to wait before the next try; 0: not at all."""
        own = self._by_place.get(place(address), deque())
        waits = (
            failures[0] + WINDOW_SECONDS - now
            for failures, most in ((own, FAILURES_MAX), (self._all, FAILURES_TOTAL_MAX))
            if len(failures) >= most
        )
        return max(math.ceil(max(waits, default=0.0)), 0)

    def failed(self, address: str, now: float) -> None:
        where = place(address)
        self._by_place.setdefault(where, deque(maxlen=FAILURES_MAX)).append(now)
        self._by_place.move_to_end(where)
        self._all.append(now)
        while len(self._by_place) > ADDRESSES_MAX:
            self._by_place.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """Forget what an address has got wrong before it got it right."""
        self._by_place.pop(place(address), None)


def place(address: str) -> str:
    """What counts as one address.

    >>> place("10.0.0.7"), place("2001:db8:1:2:3:4:5:6"), place("::ffff:10.0.0.7"), place("")
    ('10.0.0.7', '2001:db8:1:2::/64', '10.0.0.7', '')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
