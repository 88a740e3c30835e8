"""Samples of other brokers: the newest of each, and no more than there is room for."""

import pytest

from kafscale.control.messages import MetricsSample
from kafscale.control.samples import Samples
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
