"""Where the head begins is found by few looks, or by many where indexes do not know."""

import pytest

from kafscale.spark.jobs.compact.candidates import Candidate
from kafscale.spark.jobs.compact.cleanup_policy import Policy
from kafscale.spark.jobs.compact.dirty_ratio import dirty_since_ms, head_start
from kafscale.storage.formats import object_keys
from unit.spark.jobs.keyed import NOW_MS, TOPIC, KeyedLog


@pytest.fixture
def log():
    with KeyedLog() as made:
        yield made


def put_hours(log, *hours, is_known=True):
    """A segment of one record for each of several hours."""
    prior_ms = NOW_MS if is_known else None
    for hour in hours:
        log.time_ms = NOW_MS + hour
        log.put_segment([log.batch([(b"k", b"v")])], prior_ms=prior_ms)
        prior_ms = None if prior_ms is None else max(prior_ms, NOW_MS + hour)
    return log.survey().partitions[TOPIC, 0]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("limit", "start"), [(0, 0), (1, 1), (3, 2), (5, 4), (9, None)])
def test_the_first_segment_that_is_too_young(log, is_known, limit, start):
    found = put_hours(log, 1, 2, 5, 4, 9, is_known=is_known)
    assert head_start(log.store, found, NOW_MS + limit) == start


def test_a_segment_that_tells_no_times_is_as_old_as_its_object(log):
    found = put_hours(log, 1, 2)
    log.store.delete([object_keys.index_key("default", TOPIC, 0, 1)])
    assert head_start(log.store, found, NOW_MS) == 0
    assert head_start(log.store, found, NOW_MS - 1) == 0
    assert head_start(log.store, found, NOW_MS + 1) is None


def test_since_when_it_is_dirty(log):
    found = put_hours(log, 1, 2, 5)
    assert dirty_since_ms(log.store, Candidate(found, Policy(), 1, 3)) == NOW_MS + 2
    assert dirty_since_ms(log.store, Candidate(found, Policy(), 3, 3)) is None
