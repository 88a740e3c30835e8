"""Exponential backoff with jitter and a maximum."""

from random import Random

FIRST_MS = 100
LAST_MS = 10_000
JITTER = 0.3


class Backoff:
    """The pauses between the attempts of one operation.

    >>> backoff = Backoff(Random(7))
    >>> [round(backoff.next_seconds(), 2) for _ in range(3)]
    [0.11, 0.21, 0.48]
    """

    __slots__ = ("_pause_ms", "_random", "tries")

    def __init__(self, random: Random) -> None:
        self._random = random
        self._pause_ms = FIRST_MS
        self.tries = 0

    def next_seconds(self) -> float:
        self.tries += 1
        pause_ms = self._pause_ms * (1 + JITTER * self._random.random())
        self._pause_ms = min(self._pause_ms * 2, LAST_MS)
        return pause_ms / 1000
