"""What an expression of Prometheus asks for: series, their labels, and what labels are left."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kafscale.observability.metrics.all_series import SERIES, TARGET_LABELS

_SELECTOR = re.compile(r"\b(kafscale_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?")
_GROUPING = re.compile(r"\bby \(([^)]*)\)")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")


@dataclass(frozen=True)
class Selected:
    """One selector of an expression."""

    name: str
    labels: frozenset[str]
    """Those that it asks for by value."""


def selected(expression: str) -> Iterator[Selected]:
    """Every selector in an expression.

    >>> list(selected('sum by (le) (up{job="a"})'))
    [Selected(name='up', labels=frozenset({'job'}))]
    """
    for name, matchers in _SELECTOR.findall(expression):
        yield Selected(name, frozenset(_MATCHER.findall(matchers)))


def groupings(expression: str) -> list[frozenset[str]]:
    """The labels of each `by`."""
    found = _GROUPING.findall(expression)
    return [frozenset(label.strip() for label in labels.split(",")) for labels in found]


def complaints(expression: str) -> list[str]:
    """What an expression asks for and nobody has."""
    found: list[str] = []
    within: set[str] = set()
    for each in selected(expression):
        if each.name not in SERIES:
            found.append(f"there is no series {each.name}")
            continue
        within |= SERIES[each.name] | TARGET_LABELS
        strange = each.labels - SERIES[each.name] - TARGET_LABELS
        found += [f"{each.name} has no label {label}" for label in sorted(strange)]
    for labels in groupings(expression):
        found += [f"nothing here has a label {label}" for label in sorted(labels - within)]
    return found


def labels_left(expression: str) -> frozenset[str]:
    """The labels that the outcome of an expression has in any case."""
    if grouped := groupings(expression):
        return frozenset.intersection(*grouped) - {"le"}
    if re.match(r"(absent|avg|max|min|sum)\(", expression):
        return frozenset()
    return (
        frozenset.intersection(*(SERIES[each.name] for each in selected(expression)))
        | TARGET_LABELS
    )
