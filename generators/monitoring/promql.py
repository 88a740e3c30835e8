"""Builds PromQL expressions for dashboards and alerts.

Building expressions from functions ensures that brackets match, that quantiles are computed from
sums that keep the label `le`, and that dashboards select the series of one cluster.

>>> sum_by(rate(selector("kafscale_requests_total", equals("api", "Fetch"))), "pod")
'sum(rate(kafscale_requests_total{api="Fetch"}[5m])) by (pod)'
"""

from typing import Final

WINDOW: Final = "5m"
"""The default range of rates: about ten scrapes."""


def equals(label: str, value: str) -> str:
    return f'{label}="{value}"'


def matches(label: str, pattern: str) -> str:
    return f'{label}=~"{pattern}"'


SELECTED_CLUSTER: Final = (equals("namespace", "$namespace"), equals("cluster", "$cluster"))
"""Matchers with the dashboard variables."""


def selector(name: str, *matchers: str) -> str:
    return f"{name}{{{', '.join(matchers)}}}" if matchers else name


def in_cluster(name: str, *matchers: str) -> str:
    """Select series of the cluster that is selected in the dashboard."""
    return selector(name, *SELECTED_CLUSTER, *matchers)


def rate(series: str, window: str = WINDOW) -> str:
    """Return the increase of a counter per second."""
    return f"rate({series}[{window}])"


def increase(series: str, window: str) -> str:
    """Return the increase of a counter."""
    return f"increase({series}[{window}])"


def deriv(series: str, window: str) -> str:
    """Return the change of a gauge per second."""
    return f"deriv({series}[{window}])"


def sum_by(expression: str, *by: str) -> str:
    return _aggregate("sum", expression, by)


def max_by(expression: str, *by: str) -> str:
    return _aggregate("max", expression, by)


def min_by(expression: str, *by: str) -> str:
    return _aggregate("min", expression, by)


def avg_by(expression: str, *by: str) -> str:
    return _aggregate("avg", expression, by)


def topk(count: int, expression: str) -> str:
    """Return the series with the largest values."""
    return f"topk({count}, {expression})"


def or_zero(expression: str) -> str:
    """Return 0 instead of an empty result; only for expressions without labels."""
    return f"({expression} or vector(0))"


def histogram_quantile(share: float, buckets: str, *by: str, window: str = WINDOW) -> str:
    """Return a quantile of a histogram, given its `_bucket` series.

    >>> histogram_quantile(0.99, "x_bucket", "pod")
    'histogram_quantile(0.99, sum(rate(x_bucket[5m])) by (le, pod))'
    """
    return f"histogram_quantile({share}, {sum_by(rate(buckets, window), 'le', *by)})"


def _aggregate(operator: str, expression: str, by: tuple[str, ...]) -> str:
    grouping = f" by ({', '.join(by)})" if by else ""
    return f"{operator}({expression}){grouping}"
