"""The number of series is bounded, whatever names clients choose."""

import pytest

from kafscale.observability.metrics import cardinality
from kafscale.observability.metrics.broker import BROKER_METRICS, Metrics
from kafscale.observability.metrics.cardinality import (
    GROUP_SERIES_MAX,
    LAG_SERIES_MAX,
    PARTITION_SERIES_MAX,
    TOPIC_SERIES_MAX,
)
from kafscale.observability.metrics.counters import CompactionStatus
from kafscale.observability.metrics.transactions import OPEN_SERIES_MAX
from unit.observability.scraping import scrape, values

TOPICS = TOPIC_SERIES_MAX + 7
PARTITIONS = PARTITION_SERIES_MAX // TOPIC_SERIES_MAX + 1
GROUPS = GROUP_SERIES_MAX + 3
NAMED_BY_CLIENTS = {"topic", "partition", "group"}


@pytest.fixture(scope="module")
def crowded():
    """Metrics of a broker with more series of each kind than the limits."""
    metrics = Metrics()
    for number in range(TOPICS):
        topic = metrics.topic(f"topic-{number}")
        for acks in (-1, 0, 1):
            topic.produced(acks, 0.02)
        for cache_hit in (True, False):
            topic.fetched(cache_hit, 0.02)
        for partition in range(PARTITIONS):
            result = metrics.partition(f"topic-{number}", partition)
            result.produces_succeeded, result.produce_bytes = 1, 10
            result.cache_hits, result.cache_misses = 3, 1
    for number in range(GROUPS):
        metrics.group(f"group-{number}").commits = 2
    metrics.group_lags = lambda: (
        (f"group-{group}", "orders", partition, 5)
        for group in range(GROUPS)
        for partition in range(LAG_SERIES_MAX // GROUPS + 2)
    )
    metrics.stored_bytes = metrics.buffered_bytes = lambda: (
        (f"topic-{topic}", partition, 100)
        for topic in range(TOPICS)
        for partition in range(PARTITIONS)
    )
    metrics.open_transactions = lambda: (
        (f"topic-{topic}", partition, 1.0)
        for topic in range(TOPICS)
        for partition in range(PARTITIONS)
    )
    metrics.compaction = lambda: CompactionStatus(
        dirty_ratios={f"topic-{topic}": topic / TOPICS for topic in range(TOPICS)}
    )
    return metrics


@pytest.fixture(scope="module")
def samples(crowded):
    """The same as Prometheus reads it, which takes a while: series by name, then by labels."""
    result = {}
    for family in scrape(crowded):
        for sample in family.samples:
            result.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return result


@pytest.mark.parametrize(
    "declared",
    [each for each in BROKER_METRICS if NAMED_BY_CLIENTS & set(each.labels)],
    ids=lambda declared: declared.name,
)
def test_series_named_by_clients_are_bounded(crowded, declared):
    by_label = dict(
        zip(declared.labels, zip(*_labels(crowded, declared), strict=True), strict=True)
    )
    most = {
        "topic": TOPIC_SERIES_MAX if "partition" not in declared.labels else PARTITION_SERIES_MAX,
        "partition": PARTITION_SERIES_MAX,
        "group": GROUP_SERIES_MAX,
    }
    if declared.name == "kafscale_consumer_lag":
        assert len(by_label["group"]) == LAG_SERIES_MAX + 1
        return
    for label in NAMED_BY_CLIENTS & by_label.keys():
        assert len(set(by_label[label])) <= most[label] + 1
    assert any(cardinality.OTHER in result for result in by_label.values())


def _labels(metrics, declared):
    return [labels for labels, _ in declared.read(metrics)]


def test_exposition_is_bounded(crowded):
    lines = crowded.exposition().count(b"\n")
    histogram = 14
    assert lines < (
        9 * (PARTITION_SERIES_MAX + 1)
        + (OPEN_SERIES_MAX + 1)
        + (5 * histogram + 1) * (TOPIC_SERIES_MAX + 1)
        + 2 * (GROUP_SERIES_MAX + 1)
        + LAG_SERIES_MAX
        + 1000
    )


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("kafscale_produce_bytes_total", TOPICS * PARTITIONS * 10),
        ("kafscale_produce_requests_total", TOPICS * PARTITIONS),
        ("kafscale_stored_bytes", TOPICS * PARTITIONS * 100),
        ("kafscale_consumer_commits_total", GROUPS * 2),
        ("kafscale_consumer_lag", GROUPS * (LAG_SERIES_MAX // GROUPS + 2) * 5),
        ("kafscale_produce_latency_seconds_count", TOPICS * 3),
        ("kafscale_fetch_latency_seconds_count", TOPICS * 2),
    ],
)
def test_sums_are_preserved(samples, name, whole):
    assert sum(samples[name].values()) == whole


def test_rates_of_the_rest_are_aggregated(samples):
    assert samples["kafscale_cache_hit_rate"]["other", "other"] == 0.75
    counts = samples["kafscale_produce_latency_seconds_bucket"]
    assert counts["other", "-1", "0.01"] == 0
    assert counts["other", "-1", "0.025"] == TOPICS - TOPIC_SERIES_MAX


def test_few_series_are_all_named():
    metrics = Metrics()
    metrics.group("readers").commits = 1
    assert values(metrics, "kafscale_consumer_commits_total") == {("readers",): 1}


def test_removed_series_free_space_for_others():
    metrics = Metrics()
    for number in range(GROUP_SERIES_MAX + 1):
        metrics.group(f"group-{number}")
    assert ("other",) in values(metrics, "kafscale_consumer_commits_total")
    metrics.forget_group("group-0")
    left = values(metrics, "kafscale_consumer_commits_total")
    assert ("other",) not in left
    assert (f"group-{GROUP_SERIES_MAX}",) in left
