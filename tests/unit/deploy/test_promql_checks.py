"""The PromQL checks find unknown series and labels."""

import pytest

from unit.deploy import promql_checks


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("kafscale_brokerz == 0", "there is no series kafscale_brokerz"),
        ('kafscale_brokers{topic="a"}', "kafscale_brokers has no label topic"),
        ("sum by (topic) (kafscale_brokers)", "no series here has a label topic"),
        ("kafscale_request_seconds > 1", "there is no series kafscale_request_seconds"),
        ('kafscale_request_seconds_sum{le="1"}', "kafscale_request_seconds_sum has no label le"),
    ],
)
def test_unknown_series_and_labels_are_found(expression, problem):
    assert promql_checks.problems(expression) == [problem]


@pytest.mark.parametrize(
    "expression",
    [
        'kafscale_brokers{namespace="a", cluster=~"b.*"}',
        "sum(rate(kafscale_request_seconds_bucket[5m])) by (le, api)",
        "up == 0",
    ],
)
def test_known_series_and_labels_are_accepted(expression):
    assert promql_checks.problems(expression) == []


def test_metric_names_are_unique():
    names = [declared.name for declared in promql_checks.METRICS]
    assert len(set(names)) == len(names)


def test_remaining_labels():
    assert promql_checks.remaining_labels("sum by (pod, le) (up)") == {"pod"}
    assert promql_checks.remaining_labels("sum(up)") == frozenset()
    assert promql_checks.remaining_labels("up == 0") == promql_checks.TARGET_LABELS
