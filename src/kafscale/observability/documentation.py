"""The page about metrics, made from their declarations; a test compares it with the one in docs."""

from collections.abc import Iterable
from typing import Any

from kafscale.observability.declaration import Declared
from kafscale.observability.metrics import DECLARATIONS
from kafscale.observability.operator_metrics import OPERATOR_DECLARATIONS

_INTRODUCTION = """\
<!-- Written by `make docs` from the metrics in the code; edit those instead. -->

# Metrics

Every metric that Kafscale emits, in Prometheus' text format.

"""

_HEAD = """\
| metric | type | labels | meaning |
|---|---|---|---|
"""


def page() -> str:
    """`docs/metrics.md`."""
    return (
        f"{_INTRODUCTION}## Brokers\n\n{_table(DECLARATIONS)}"
        f"\n## Operator\n\n{_table(OPERATOR_DECLARATIONS)}"
    )


def _table(declarations: Iterable[Declared[Any]]) -> str:
    rows = (
        f"| `{declared.name}` | {declared.type} "
        f"| {', '.join(f'`{label}`' for label in declared.labels)} | {declared.meaning} |\n"
        for declared in declarations
    )
    return _HEAD + "".join(rows)
