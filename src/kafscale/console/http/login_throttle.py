"""`LoginThrottle`: slows the guessing of passwords down, without locking users out.

After failures, every further attempt of the address is held, right or wrong, and its attempts take
turns: a guesser learns nothing from the delay, and the user behind the same proxy still gets in.
The failures of all addresses are limited in the same way. IPv6 addresses are counted by their /64
network, as one machine may own all of it.
"""

import ipaddress
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final

from kafscale.net.address import parse_ip

WINDOW_SECONDS: Final = 60.0
FAILURES_MAX: Final = 5
"""Failures of an address per window; then its attempts take turns."""
FAILURES_TOTAL_MAX: Final = 100
"""Failures of all addresses per window; limits guessing from many addresses."""
TURN_SECONDS: Final = 3.0
"""How far the attempts of an address are apart."""
TOTAL_TURN_SECONDS: Final = 0.5
"""How far the attempts of all addresses are apart."""
HOLD_SECONDS_MAX: Final = 15.0
"""Attempts that would be held longer are refused."""
ADDRESSES_MAX: Final = 10_000


@dataclass
class _Attempts:
    """The failures of an address, or of all."""

    failures: deque[float]
    """The times of the newest; as many as are allowed."""
    turn_seconds: float
    turn_at: float = 0.0
    """When the newest attempt that is held has its turn."""

    def next_turn(self, now: float) -> float:
        is_full = len(self.failures) == self.failures.maxlen
        if not is_full or self.failures[0] + WINDOW_SECONDS <= now:
            return now
        return max(now, self.turn_at) + self.turn_seconds


def _of_address() -> _Attempts:
    return _Attempts(deque(maxlen=FAILURES_MAX), TURN_SECONDS)


def _of_all() -> _Attempts:
    return _Attempts(deque(maxlen=FAILURES_TOTAL_MAX), TOTAL_TURN_SECONDS)


@dataclass
class LoginThrottle:
    """A pure state machine: the time is passed in. Both tables are bounded."""

    _by_address: OrderedDict[str, _Attempts] = field(default_factory=OrderedDict)
    _all: _Attempts = field(default_factory=_of_all)

    def begin(self, address: str, now: float) -> float | None:
        """For how many seconds to hold an attempt; None if it is refused, as too many wait."""
        own = self._by_address.get(throttle_key(address), _of_address())
        own_turn, total_turn = own.next_turn(now), self._all.next_turn(now)
        hold_seconds = max(own_turn, total_turn) - now
        if hold_seconds > HOLD_SECONDS_MAX:
            return None
        own.turn_at, self._all.turn_at = own_turn, total_turn
        return hold_seconds

    def failed(self, address: str, now: float) -> None:
        key = throttle_key(address)
        self._by_address.setdefault(key, _of_address()).failures.append(now)
        self._by_address.move_to_end(key)
        self._all.failures.append(now)
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
