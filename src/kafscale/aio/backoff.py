"""Exponential backoff with jitter and a maximum."""

from random import Random
from typing import Final

_DOUBLINGS_MAX: Final = 30


class Backoff:
    """The pauses between the attempts of one operation.

    With `random`, each pause is longer by up to the share `jitter`, so that processes which failed
    at the same time do not retry in step.

    >>> backoff = Backoff(Random(7))
    >>> [round(backoff.next_seconds(), 2) for _ in range(3)]
    [0.11, 0.21, 0.48]
    """

    __slots__ = ("_first_seconds", "_jitter", "_max_seconds", "_random", "tries")

    def __init__(
        self,
        random: Random | None = None,
        *,
        first_seconds: float = 0.1,
        max_seconds: float = 10.0,
        jitter: float = 0.3,
    ) -> None:
        self._random = random
        self._first_seconds = first_seconds
        self._max_seconds = max_seconds
        self._jitter = jitter
        self.tries = 0
        """Failed attempts since the last success."""

    def next_seconds(self) -> float:
        """Count a failed attempt; return the pause before the next one."""
        # The maximum is reached after a few doublings: no huge powers.
        doubled = self._first_seconds * 2.0 ** min(self.tries, _DOUBLINGS_MAX)
        self.tries += 1
        share = self._jitter * self._random.random() if self._random else 0.0
        return min(doubled, self._max_seconds) * (1 + share)

    def reset(self) -> None:
        """Start again at the first pause, after a success."""
        self.tries = 0
