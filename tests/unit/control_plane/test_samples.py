"""Samples of brokers: the newest of each, within limits."""

import pytest

from kafscale.control_plane.messages import MetricsSample
from kafscale.control_plane.samples import ClusterSamples, Samples
from kafscale.errors import InvalidRequestError


def sample(broker_id, timestamp_ms, **gauges):
    return MetricsSample(broker_id=broker_id, timestamp_ms=timestamp_ms, gauges=gauges)


class Clock:
    now_ms = 1_000

    def __call__(self):
        return self.now_ms


def test_newest_sample_of_each_broker_is_kept():
    samples = Samples(Clock())
    for received in (sample("1", 5, lag=1), sample("2", 1), sample("1", 9, lag=2), sample("1", 7)):
        samples.take(received)
    assert samples.fresh() == [sample("2", 1), sample("1", 9, lag=2)]


def test_broker_silent_for_longest_is_evicted_first():
    samples = Samples(Clock(), brokers_max=2)
    for received in (sample("1", 1), sample("2", 2), sample("1", 3), sample("3", 4)):
        samples.take(received)
    assert [kept.broker_id for kept in samples.fresh()] == ["1", "3"]


def test_silent_broker_has_no_sample():
    clock = Clock()
    samples = Samples(clock, fresh_ms=100)
    samples.take(sample("1", 1))
    clock.now_ms += 101
    assert samples.fresh() == []


@pytest.mark.parametrize(
    "received",
    [sample("", 1), sample("1", 1, a=1, b=2), sample("1", 61_001), sample("1", 2**63 - 1)],
)
def test_invalid_samples_are_rejected(received):
    samples = Samples(Clock(), values_max=1)
    with pytest.raises(InvalidRequestError):
        samples.take(received)
    assert not samples.fresh()


def cluster_sample(cluster_id, broker_id, timestamp_ms=1):
    return MetricsSample(cluster_id=cluster_id, broker_id=broker_id, timestamp_ms=timestamp_ms)


def test_fresh_samples_by_cluster():
    clock = Clock()
    samples = ClusterSamples(clock, fresh_ms=100)
    samples.take(cluster_sample("a", "1"))
    clock.now_ms += 60
    samples.take(cluster_sample("a", "2"))
    samples.take(cluster_sample("b", "1"))
    assert samples.fresh("a") == [cluster_sample("a", "1"), cluster_sample("a", "2")]
    clock.now_ms += 60
    assert samples.fresh("a") == [cluster_sample("a", "2")]
    assert samples.fresh("b") == [cluster_sample("b", "1")]
    assert samples.fresh("c") == []


def test_older_sample_does_not_refresh_a_newer_one():
    clock = Clock()
    samples = ClusterSamples(clock, fresh_ms=100)
    samples.take(cluster_sample("a", "1", timestamp_ms=5))
    clock.now_ms += 101
    samples.take(cluster_sample("a", "1", timestamp_ms=4))
    assert samples.fresh("a") == []


def test_cluster_silent_for_longest_is_evicted_first():
    samples = ClusterSamples(Clock(), clusters_max=2)
    for received in (
        cluster_sample("a", "1"),
        cluster_sample("b", "1"),
        cluster_sample("a", "2"),
        cluster_sample("c", "1"),
    ):
        samples.take(received)
    assert [len(samples.fresh(cluster_id)) for cluster_id in "abc"] == [2, 0, 1]


@pytest.mark.parametrize("received", [cluster_sample("", "1"), cluster_sample("a", "")])
def test_sample_without_ids_is_rejected(received):
    samples = ClusterSamples(Clock())
    samples.take(cluster_sample("a", "1"))
    with pytest.raises(InvalidRequestError):
        samples.take(received)
    assert samples.fresh("a") == [cluster_sample("a", "1")]
