"""Samples of other brokers: the newest of each, and no more than there is room for."""

import pytest

from kafscale.control_plane.messages import MetricsSample
from kafscale.control_plane.samples import ClusterSamples, Samples
from kafscale.errors import InvalidRequestError


def sample(broker_id, timestamp_ms, **gauges):
    return MetricsSample(broker_id=broker_id, timestamp_ms=timestamp_ms, gauges=gauges)


def test_the_newest_of_each_broker_is_kept():
    samples = Samples()
    for told in (sample("1", 5, lag=1), sample("2", 1), sample("1", 9, lag=2), sample("1", 7)):
        samples.take(told)
    assert list(samples.newest()) == [sample("2", 1), sample("1", 9, lag=2)]


def test_who_was_silent_for_longest_is_forgotten_first():
    samples = Samples(brokers_max=2)
    for told in (sample("1", 1), sample("2", 2), sample("1", 3), sample("3", 4)):
        samples.take(told)
    assert [kept.broker_id for kept in samples.newest()] == ["1", "3"]


@pytest.mark.parametrize("told", [sample("", 1), sample("1", 1, a=1, b=2)])
def test_what_is_nobodys_or_too_much_is_refused(told):
    samples = Samples(values_max=1)
    with pytest.raises(InvalidRequestError):
        samples.take(told)
    assert not list(samples.newest())


def of(cluster_id, broker_id, timestamp_ms=1):
    return MetricsSample(cluster_id=cluster_id, broker_id=broker_id, timestamp_ms=timestamp_ms)


class Clock:
    now_ms = 1_000

    def __call__(self):
        return self.now_ms


def test_clusters_have_samples_of_their_own_as_long_as_these_are_fresh():
    clock = Clock()
    samples = ClusterSamples(clock, fresh_ms=100)
    samples.take(of("a", "1"))
    clock.now_ms += 60
    samples.take(of("a", "2"))
    samples.take(of("b", "1"))
    assert samples.fresh("a") == [of("a", "1"), of("a", "2")]
    clock.now_ms += 60
    assert samples.fresh("a") == [of("a", "2")]
    assert samples.fresh("b") == [of("b", "1")]
    assert samples.fresh("c") == []


def test_an_older_sample_does_not_make_a_newer_one_fresh_again():
    clock = Clock()
    samples = ClusterSamples(clock, fresh_ms=100)
    samples.take(of("a", "1", timestamp_ms=5))
    clock.now_ms += 101
    samples.take(of("a", "1", timestamp_ms=4))
    assert samples.fresh("a") == []


def test_the_cluster_that_was_silent_for_longest_is_forgotten_first():
    samples = ClusterSamples(Clock(), clusters_max=2)
    for told in (of("a", "1"), of("b", "1"), of("a", "2"), of("c", "1")):
        samples.take(told)
    assert [len(samples.fresh(cluster_id)) for cluster_id in "abc"] == [2, 0, 1]


@pytest.mark.parametrize("told", [of("", "1"), of("a", "")])
def test_a_sample_of_nobody_is_refused_and_costs_nobody_theirs(told):
    samples = ClusterSamples(Clock())
    samples.take(of("a", "1"))
    with pytest.raises(InvalidRequestError):
        samples.take(told)
    assert samples.fresh("a") == [of("a", "1")]
