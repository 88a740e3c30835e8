"""How long members have not answered."""


class Silences:
    """Counts from the first time that somebody was asked in vain."""

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}

    def count(self, name: str, now_ms: int, *, answers: bool) -> int:
        """How long somebody has been silent, in milliseconds; 0 for one that answers.

        >>> silences = Silences()
        >>> [silences.count("a", now, answers=now == 30) for now in (10, 20, 30, 40)]
        [0, 10, 0, 0]
        """
        if answers:
            self._since_ms.pop(name, None)
            return 0
        return now_ms - self._since_ms.setdefault(name, now_ms)

    def forget(self, prefix: str) -> None:
        """Forget everybody whose name begins so."""
        for name in [each for each in self._since_ms if each.startswith(prefix)]:
            del self._since_ms[name]
