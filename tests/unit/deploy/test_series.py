"""The judge of alerts and dashboards has to see what is wrong with an expression."""

import pytest

from kafscale.observability.metrics.all_series import TARGET_LABELS
from unit.deploy import series


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("kafscale_brokerz == 0", "there is no series kafscale_brokerz"),
        ('kafscale_brokers{topic="a"}', "kafscale_brokers has no label topic"),
        ("sum by (topic) (kafscale_brokers)", "nothing here has a label topic"),
        ("kafscale_request_seconds > 1", "there is no series kafscale_request_seconds"),
        ('kafscale_request_seconds_sum{le="1"}', "kafscale_request_seconds_sum has no label le"),
    ],
)
def test_what_nobody_has_is_seen(expression, complaint):
    assert series.complaints(expression) == [complaint]


@pytest.mark.parametrize(
    "expression",
    [
        'kafscale_brokers{namespace="a", cluster=~"b.*"}',
        "sum(rate(kafscale_request_seconds_bucket[5m])) by (le, api)",
        "up == 0",
    ],
)
def test_what_there_is_may_be_asked_for(expression):
    assert series.complaints(expression) == []


def test_what_is_left_of_labels():
    assert series.labels_left("sum by (pod, le) (up)") == {"pod"}
    assert series.labels_left("sum(up)") == frozenset()
    assert series.labels_left("up == 0") == TARGET_LABELS
