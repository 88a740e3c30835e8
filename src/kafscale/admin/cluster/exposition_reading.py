r"""Reading what our brokers tell at /metrics: Prometheus' text format, as `exposition` writes it.

>>> told = Exposition('# HELP x Why.\n# TYPE x gauge\nx{topic="a",partition="0"} 2\n')
>>> list(told.samples("x", "topic"))
[(('a',), 2.0)]

The law: what is not asked for costs next to nothing, because a broker of many partitions tells of
tens of thousands of series, and is read every few seconds. What cannot be read is left out: another
version of a broker may tell other things, and that is no reason to see nothing of it.
"""

import re
from collections.abc import Iterator
from typing import Final

_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_MEANT: Final = {"n": "\n"}

Labels = tuple[str, ...]


class Exposition:
    """What one broker told at one moment."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, name: str) -> float | None:
        """The value of a metric without labels; None where there is no such metric."""
        return next((value for _, value in self.samples(name)), None)

    def samples(self, name: str, *labels: str) -> Iterator[tuple[Labels, float]]:
        """The series of a metric: the values of these labels, and the number they lead to."""
        yield from self._read(name, name, labels)

    def buckets(self, name: str, *labels: str) -> Iterator[tuple[Labels, float]]:
        """The buckets of a histogram, its bound (`le`) as the last of the labels."""
        yield from self._read(name, f"{name}_bucket", (*labels, "le"))

    def _read(self, family: str, name: str, labels: Labels) -> Iterator[tuple[Labels, float]]:
        begin = name + "{"
        between = [f"{',' if index else ''}{label}=" for index, label in enumerate(labels)]
        for line in self._lines(family):
            if not labels and line.startswith(name + " "):
                given = ""
                number = line[len(name) + 1 :]
            elif line.startswith(begin):
                given, _, number = line[len(begin) :].rpartition("} ")
            else:
                continue
            values = _values(given, labels, between)
            if values is not None:
                try:
                    yield values, float(number)
                except ValueError:
                    continue

    def _lines(self, family: str) -> list[str]:
        """The lines between the head of a family and that of the next."""
        head = f"# TYPE {family} "
        begin = self._text.find(head)
        if begin < 0:
            return []
        end = self._text.find("\n# ", begin)
        # Not `splitlines`: names of groups may hold what Unicode takes for the end of a line.
        return self._text[begin : end if end >= 0 else None].split("\n")[1:]


def _values(given: str, labels: Labels, between: list[str]) -> Labels | None:
    """The values of some labels; None where one of them is not given.

    `between` is what stands between the values where exactly these labels are given, in order.
    """
    if not labels:
        return ()
    if "\\" in given:
        pairs = {name: _unescaped(value) for name, value in _LABEL.findall(given)}
    else:
        # Quotes stand only around values, then: a tenth of the time of an expression.
        parts = given.split('"')
        if parts[:-1:2] == between:
            return tuple(parts[1::2])
        pairs = {
            name.strip(",="): value for name, value in zip(parts[::2], parts[1::2], strict=False)
        }
    if any(label not in pairs for label in labels):
        return None
    return tuple(pairs[label] for label in labels)


def _unescaped(value: str) -> str:
    return _ESCAPED.sub(lambda found: _MEANT.get(found[1], found[1]), value)
