"""Tests of reading pods, including incomplete ones."""

import pytest

from kafscale.operator.manifests.brokers import pods


def pod(status=None, **metadata):
    return {"metadata": {"name": "production-broker-7", **metadata}, "status": status}


def ready(status):
    return {"conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", **status}]}


def test_ordinal_and_revision():
    assert pods.ordinal(pod()) == 7
    assert pods.revision(pod(labels={"controller-revision-hash": "p-5d9"})) == "p-5d9"
    assert pods.revision(pod()) == ""


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, False),
        ({}, False),
        ({"conditions": [{"type": "Initialized", "status": "True"}]}, False),
        (ready({"status": "False"}), False),
        (ready({"status": "Unknown"}), False),
        (ready({"status": "True"}), True),
    ],
)
def test_readiness(status, expected):
    assert pods.is_ready(pod(status)) is expected


def test_termination():
    assert not pods.is_terminating(pod())
    assert pods.is_terminating(pod(deletionTimestamp="2026-01-01T00:00:00Z"))


def test_ready_since():
    since = "2026-01-01T00:00:07Z"
    ready_since = ready({"status": "True", "lastTransitionTime": since})
    assert pods.ready_ms(pod(ready_since)) == 1_767_225_607_000
    for status in (None, {}, ready({"status": "False", "lastTransitionTime": since})):
        assert pods.ready_ms(pod(status)) == 0
