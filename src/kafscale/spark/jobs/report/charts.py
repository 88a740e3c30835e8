"""Charts of the HTML page: horizontal bars, columns and stacked bars.

Charts are HTML and SVG without scripts and colours: classes name the roles, and `style` has the
colours for light and dark mode. Invariants: all external text is escaped here, and every mark has
its value as text, in a tooltip and for screen readers. Pure.
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
"""The width of a label below a column, so that labels do not overlap."""

_STEPS: Final = (1, 2, 2.5, 5, 10)


class Mark(NamedTuple):
    """A value of a chart, with its label and its value as text."""

    label: str
    value: float
    text: str


def bars(marks: Sequence[Mark]) -> str:
    """Return a horizontal bar for each mark, between its label and its value."""
    greatest = max((mark.value for mark in marks), default=0) or 1
    rows = "".join(
        f'<li><span class="name" title="{escape(mark.label)}">{escape(mark.label)}</span>'
        f'<span class="track"><span class="bar" style="width:{mark.value / greatest:.1%}"></span>'
        f'</span><span class="amount">{escape(mark.text)}</span></li>'
        for mark in marks
    )
    return f'<ul class="bars">{rows}</ul>'


def stack(marks: Sequence[Mark]) -> str:
    """Return a stacked bar with a legend."""
    total = sum(mark.value for mark in marks) or 1
    parts = "".join(
        f'<span class="part part-{number}" style="width:{mark.value / total:.2%}"'
        f' title="{escape(mark.label)}: {escape(mark.text)}"></span>'
        for number, mark in enumerate(marks)
    )
    legend = "".join(
        f'<li><span class="dot part-{number}"></span>{escape(mark.label)}'
        f" <b>{escape(mark.text)}</b></li>"
        for number, mark in enumerate(marks)
    )
    return f'<div class="stack">{parts}</div><ul class="legend">{legend}</ul>'


def columns(title: str, marks: Sequence[Mark], format_value: Callable[[float], str]) -> str:
    """Return a column chart with a scale."""
    scale = ticks(max((mark.value for mark in marks), default=0))
    plot_height = HEIGHT - _TOP - _BOTTOM
    slot = (WIDTH - _LEFT - _RIGHT) / max(len(marks), 1)
    every = max(-(-_LABEL_WIDTH // max(int(slot), 1)), 1)
    elements = []
    for value in scale:
        y = _TOP + plot_height * (1 - value / scale[-1])
        elements.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{escape(format_value(value))}</text>"
        )
    for number, mark in enumerate(marks):
        height = plot_height * mark.value / scale[-1]
        # Small values stay visible.
        height = max(height, 1.5) if mark.value else 0
        x = _LEFT + slot * number
        middle = x + slot / 2
        width = min(slot * 0.72, 56)
        elements.append(
            f'<rect class="column" x="{middle - width / 2:.1f}" width="{width:.1f}"'
            f' y="{_TOP + plot_height - height:.1f}" height="{height:.1f}" rx="2">'
            f"<title>{escape(mark.label)}: {escape(mark.text)}</title></rect>"
        )
        if (len(marks) - 1 - number) % every == 0:
            elements.append(
                f'<text class="tick" x="{middle:.1f}" y="{HEIGHT - 6}" text-anchor="middle">'
                f"{escape(mark.label)}</text>"
            )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(elements)}</svg>"
    )


def ticks(greatest: float, about: int = 4) -> list[float]:
    """Return round numbers from 0 to at least the greatest value, in `about` steps.

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
