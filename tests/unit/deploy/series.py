"""What an expression of Prometheus asks for: series, their labels, and what labels are left."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kafscale.observability.metrics import DECLARATIONS
from kafscale.observability.operator_metrics import OPERATOR_DECLARATIONS

OF_TARGETS = frozenset({"cluster", "namespace", "pod", "service"})
"""Labels that every series has from where it was read: ServiceMonitors see to that."""
OF_PROMETHEUS: Mapping[str, frozenset[str]] = {"up": frozenset()}
PARTS = ("_bucket", "_count", "_sum")

_SELECTOR = re.compile(r"\b(kafscale_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?")
_GROUPING = re.compile(r"\bby \(([^)]*)\)")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")


@dataclass(frozen=True)
class Selected:
    """One selector of an expression."""

    name: str
    labels: frozenset[str]
    """Those that it asks for by value."""


def declared() -> dict[str, frozenset[str]]:
    """All series that there are, with their own labels."""
    series = dict(OF_PROMETHEUS)
    for each in (*DECLARATIONS, *OPERATOR_DECLARATIONS):
        labels = frozenset(each.labels)
        if each.type != "histogram":
            series[each.name] = labels
            continue
        for part in PARTS:
            series[each.name + part] = labels | ({"le"} if part == "_bucket" else set())
    return series


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
    known = declared()
    found: list[str] = []
    within: set[str] = set()
    for each in selected(expression):
        if each.name not in known:
            found.append(f"there is no series {each.name}")
            continue
        within |= known[each.name] | OF_TARGETS
        strange = each.labels - known[each.name] - OF_TARGETS
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
    known = declared()
    return frozenset.intersection(*(known[each.name] for each in selected(expression))) | OF_TARGETS
