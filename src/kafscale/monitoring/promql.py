"""The words of Prometheus' language that dashboards and alerts are written in.

The law: an expression is put together from these, so that brackets close, a quantile is taken of
what was summed with its bounds (`le`) kept, and series of a cluster are told from those of others.

>>> total(rate(series("kafscale_requests_total", equals("api", "Fetch"))), "pod")
'sum(rate(kafscale_requests_total{api="Fetch"}[5m])) by (pod)'
"""

from typing import Final

WINDOW: Final = "5m"
"""Over which rates are taken: long enough for ten scrapes, short enough to see what happens."""


def equals(label: str, value: str) -> str:
    return f'{label}="{value}"'


def matches(label: str, pattern: str) -> str:
    return f'{label}=~"{pattern}"'


THIS_CLUSTER: Final = (equals("namespace", "$namespace"), equals("cluster", "$cluster"))
"""What a reader of a dashboard has chosen."""


def series(name: str, *matchers: str) -> str:
    return f"{name}{{{', '.join(matchers)}}}" if matchers else name


def here(name: str, *matchers: str) -> str:
    """The series of the cluster that is looked at."""
    return series(name, *THIS_CLUSTER, *matchers)


def rate(selected: str, window: str = WINDOW) -> str:
    """How fast a counter grows, per second."""
    return f"rate({selected}[{window}])"


def increase(selected: str, window: str) -> str:
    """By how much a counter has grown."""
    return f"increase({selected}[{window}])"


def trend(selected: str, window: str) -> str:
    """How fast a gauge grows, per second, or falls."""
    return f"deriv({selected}[{window}])"


def total(expression: str, *by: str) -> str:
    return _of("sum", expression, by)


def largest(expression: str, *by: str) -> str:
    return _of("max", expression, by)


def smallest(expression: str, *by: str) -> str:
    return _of("min", expression, by)


def average(expression: str, *by: str) -> str:
    return _of("avg", expression, by)


def top(count: int, expression: str) -> str:
    """Those with the largest values."""
    return f"topk({count}, {expression})"


def or_zero(expression: str) -> str:
    """A sum of nothing is nothing to Prometheus; here it is zero. Only for what has no labels."""
    return f"({expression} or vector(0))"


def quantile(share: float, histogram: str, *by: str, window: str = WINDOW) -> str:
    """The value below which a share of what a histogram has seen lies; give it its buckets.

    >>> quantile(0.99, "x_bucket", "pod")
    'histogram_quantile(0.99, sum(rate(x_bucket[5m])) by (le, pod))'
    """
    return f"histogram_quantile({share}, {total(rate(histogram, window), 'le', *by)})"


def _of(operator: str, expression: str, by: tuple[str, ...]) -> str:
    grouping = f" by ({', '.join(by)})" if by else ""
    return f"{operator}({expression}){grouping}"
