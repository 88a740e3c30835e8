"""Brokers that would not fit are told of before they are killed, or multiplied."""

from typing import Any

import pytest

from kafscale.config import Config
from kafscale.operator.cluster.memory_check import TAILS_BYTES, memory_condition
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
    found = memory_condition(read_cluster(body))
    return found.status, found.reason


@pytest.mark.parametrize(
    ("memory", "limit", "cache", "word"),
    [
        ("4Gi", "4Gi", "2Gi", "Fits"),
        ("1Gi", "4Gi", "2Gi", "AboveAutoscalingTarget"),
        ("1Gi", "2Gi", "2Gi", "AboveLimit"),
        ("2Gi", "8Gi", "512Mi", "Fits"),
    ],
)
def test_a_full_cache_has_to_fit(memory: str, limit: str, cache: str, word: str) -> None:
    assert condition(memory, limit, cache) == ("True" if word == "Fits" else "False", word)


def test_without_autoscaling_only_the_limit_counts() -> None:
    assert condition("1Gi", "4Gi", "2Gi", autoscaling={"enabled": False}) == ("True", "Fits")


def test_what_is_set_for_the_tails_counts() -> None:
    more = {"config": {"settings": {"storage": {"maxTailBytes": "2Gi"}}}}
    assert condition("4Gi", "4Gi", "2Gi", **more) == ("False", "AboveLimit")


def test_the_default_of_the_tails_is_that_of_brokers() -> None:
    assert Config().storage.tail_bytes_max == TAILS_BYTES
