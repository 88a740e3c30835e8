"""The page about metrics, made from their declarations; a test compares it with the one in docs."""

from kafscale.observability.metrics import DECLARATIONS

_INTRODUCTION = """\
<!-- Written by `make docs` from the metrics in the code; edit those instead. -->

# Metrics

Every metric that Kafscale emits, in Prometheus' text format.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def page() -> str:
    """`docs/metrics.md`."""
    rows = (
        f"| `{declared.name}` | {declared.type} "
        f"| {', '.join(f'`{label}`' for label in declared.labels)} | {declared.meaning} |\n"
        for declared in DECLARATIONS
    )
    return _INTRODUCTION + "".join(rows)
