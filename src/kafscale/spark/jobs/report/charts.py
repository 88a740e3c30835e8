"""Plots for a page: bars across, columns side by side, bars made of parts.

Everything is HTML and SVG without a script and without a colour of its own: classes name the roles,
and the page's style gives them colours for light and for dark. The laws: whatever comes from
outside is escaped here, and every mark says its value in words to whoever points at it or cannot
see it. Pure.
"""

from collections.abc import Callable, Sequence
from html import escape
from math import floor, log10
from typing import Final, NamedTuple

WIDTH: Final = 640
HEIGHT: Final = 220
_LEFT: Final = 64
_RIGHT: Final = 8
_TOP: Final = 10
_BOTTOM: Final = 26
_LABEL_WIDTH: Final = 70
"""What a label below a column takes, so that no two meet."""

_STEPS: Final = (1, 2, 2.5, 5, 10)


class Mark(NamedTuple):
    """Something to show: its name, how much it is, and that in words."""

    label: str
    value: float
    words: str


def bars(marks: Sequence[Mark]) -> str:
    """A bar across for each mark, with its name before and its words after it."""
    greatest = max((mark.value for mark in marks), default=0) or 1
    rows = "".join(
        f'<li><span class="name" title="{escape(mark.label)}">{escape(mark.label)}</span>'
        f'<span class="track"><span class="bar" style="width:{mark.value / greatest:.1%}"></span>'
        f'</span><span class="amount">{escape(mark.words)}</span></li>'
        for mark in marks
    )
    return f'<ul class="bars">{rows}</ul>'


def stack(marks: Sequence[Mark]) -> str:
    """One bar made of parts, and below it what each part is."""
    total = sum(mark.value for mark in marks) or 1
    parts = "".join(
        f'<span class="part part-{number}" style="width:{mark.value / total:.2%}"'
        f' title="{escape(mark.label)}: {escape(mark.words)}"></span>'
        for number, mark in enumerate(marks)
    )
    legend = "".join(
        f'<li><span class="dot part-{number}"></span>{escape(mark.label)}'
        f" <b>{escape(mark.words)}</b></li>"
        for number, mark in enumerate(marks)
    )
    return f'<div class="stack">{parts}</div><ul class="legend">{legend}</ul>'


def columns(title: str, marks: Sequence[Mark], words: Callable[[float], str]) -> str:
    """A column for each mark over a common line; the scale is in `words`."""
    scale = ticks(max((mark.value for mark in marks), default=0))
    plot_height = HEIGHT - _TOP - _BOTTOM
    slot = (WIDTH - _LEFT - _RIGHT) / max(len(marks), 1)
    every = max(-(-_LABEL_WIDTH // max(int(slot), 1)), 1)
    drawn = []
    for value in scale:
        y = _TOP + plot_height * (1 - value / scale[-1])
        drawn.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{escape(words(value))}</text>"
        )
    for number, mark in enumerate(marks):
        height = plot_height * mark.value / scale[-1]
        # What is there at all is to be seen.
        height = max(height, 1.5) if mark.value else 0
        x = _LEFT + slot * number
        middle = x + slot / 2
        width = min(slot * 0.72, 56)
        drawn.append(
            f'<rect class="column" x="{middle - width / 2:.1f}" width="{width:.1f}"'
            f' y="{_TOP + plot_height - height:.1f}" height="{height:.1f}" rx="2">'
            f"<title>{escape(mark.label)}: {escape(mark.words)}</title></rect>"
        )
        if (len(marks) - 1 - number) % every == 0:
            drawn.append(
                f'<text class="tick" x="{middle:.1f}" y="{HEIGHT - 6}" text-anchor="middle">'
                f"{escape(mark.label)}</text>"
            )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(drawn)}</svg>"
    )


def ticks(greatest: float, about: int = 4) -> list[float]:
    """Round numbers from nothing to at least the greatest value, about so many steps.

    >>> ticks(0), ticks(7), ticks(1300)
    ([0, 1], [0, 2, 4, 6, 8], [0, 500, 1000, 1500])
    """
    if greatest <= 0:
        return [0, 1]
    rough = greatest / about
    power = 10.0 ** floor(log10(rough))
    step = next(one * power for one in _STEPS if one * power >= rough * (1 - 1e-9))
    step = int(step) if step == int(step) else step
    count = -(-greatest // step)
    return [step * number for number in range(int(count) + 1)]
