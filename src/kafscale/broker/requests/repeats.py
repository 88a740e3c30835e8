"""`Repeats`: what a request names again and again is answered again, but not without a limit.

Kafka answers a partition, group or transactional id as often as a request names it. An answer may
have thousands of results, and naming it takes four bytes: without a limit, a request of a kilobyte
makes a broker build gigabytes.
"""

from collections.abc import Hashable
from typing import Final

from kafscale.errors import InvalidRequestError

REPEATED_RESULTS_MAX: Final = 20_000
"""How many results of a response may be repeated ones."""


class Repeats:
    """What one request has named."""

    __slots__ = ("_answered", "_left")

    def __init__(self) -> None:
        self._answered: dict[Hashable, int] = {}
        self._left = REPEATED_RESULTS_MAX

    def check(self, name: Hashable) -> None:
        """Raise if this was answered before, and is not to be repeated."""
        results = self._answered.get(name)
        if results is not None:
            self._left -= results
            if self._left < 0:
                raise InvalidRequestError("the request repeats itself too often")

    def add(self, name: Hashable, results: int = 1) -> None:
        """Remember how many results the answer has."""
        self._answered[name] = results
