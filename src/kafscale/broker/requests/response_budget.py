"""`ResponseBudget`: the memory of responses that clients have not received, of all connections.

Connections count what they hold for their clients: responses that wait for earlier ones, and what
the transport could not send. A fetch that reads from segments counts what it may return until its
response is handed to its connection.

Invariant: no fetch takes more than `SHARE` of what is left, so that the sum stays below the limit,
and many fetches get a little each instead of a few all of it. If nothing is left, a fetch still
returns one batch, so that every client makes progress whatever others do. Together that is the
limit and one batch per connection.
"""

from typing import Final

SHARE: Final = 4
"""A fetch takes at most the fourth part of what is left."""


class ResponseBudget:
    """Counts unsent bytes; fetches ask how much they may return."""

    __slots__ = ("_bytes_max", "used_bytes")

    def __init__(self, bytes_max: int) -> None:
        assert bytes_max > 0
        self._bytes_max = bytes_max
        self.used_bytes = 0

    def limit(self, bytes_max: int) -> int:
        """How much a fetch that asks for `bytes_max` may return, at least a byte: one batch."""
        return min(bytes_max, max((self._bytes_max - self.used_bytes) // SHARE, 1))
