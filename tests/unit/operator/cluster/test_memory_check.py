"""Tests that brokers which would exceed their memory are reported in advance."""

from typing import Any

import pytest

from kafscale.config import Config
from kafscale.operator.cluster.status import TAIL_BYTES, memory_condition
from kafscale.operator.spec.cluster import read_cluster


def condition(memory: str, limit: str, cache: str, **spec: Any) -> tuple[str, str]:
    resources = {
        "requests": {"cpu": "1", "memory": memory},
        "limits": {"cpu": "1", "memory": limit},
    }
    body = {
        "metadata": {"name": "demo", "namespace": "default", "uid": "u"},
        "spec": {
            "brokers": {"resources": resources},
            "s3": {"bucket": "records"},
            "config": {"cacheSize": cache, **spec.pop("config", {})},
            **spec,
        },
    }
    reported = memory_condition(read_cluster(body))
    return reported.status, reported.reason


@pytest.mark.parametrize(
    ("memory", "limit", "cache", "reason"),
    [
        ("4Gi", "4Gi", "2Gi", "Fits"),
        ("1Gi", "4Gi", "2Gi", "AboveAutoscalingTarget"),
        ("1Gi", "2Gi", "2Gi", "AboveLimit"),
        ("2Gi", "8Gi", "512Mi", "Fits"),
    ],
)
def test_full_cache_must_fit(memory: str, limit: str, cache: str, reason: str) -> None:
    assert condition(memory, limit, cache) == ("True" if reason == "Fits" else "False", reason)


def test_only_the_limit_counts_without_autoscaling() -> None:
    assert condition("1Gi", "4Gi", "2Gi", autoscaling={"enabled": False}) == ("True", "Fits")


def test_configured_tail_size_counts() -> None:
    more = {"config": {"settings": {"storage": {"maxTailBytes": "2Gi"}}}}
    assert condition("4Gi", "4Gi", "2Gi", **more) == ("False", "AboveLimit")


def test_default_tail_size_is_that_of_brokers() -> None:
    assert Config().storage.tail_bytes_max == TAIL_BYTES
