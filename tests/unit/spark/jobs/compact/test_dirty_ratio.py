"""The start of the head and the time of the first dirty batch, read from the bucket."""

import pytest

from kafscale.spark.jobs.compact.candidates import Candidate, CleanupPolicy
from kafscale.spark.jobs.compact.dirty_ratio import dirty_since_ms, head_start
from kafscale.storage.formats import object_keys
from unit.spark.jobs.keyed_log import NOW_MS, TOPIC, KeyedLog


@pytest.fixture
def log():
    with KeyedLog() as opened:
        yield opened


def put_times(log, *times, is_known=True):
    """Write a segment of one record for each time."""
    prior_ms = NOW_MS if is_known else None
    for time in times:
        log.time_ms = NOW_MS + time
        log.put_segment([log.batch([(b"k", b"v")])], prior_ms=prior_ms)
        prior_ms = None if prior_ms is None else max(prior_ms, NOW_MS + time)
    return log.offset_map().partitions[TOPIC, 0]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("limit", "start"), [(0, 0), (1, 1), (3, 2), (5, 4), (9, None)])
def test_head_starts_at_the_first_segment_after_the_limit(log, is_known, limit, start):
    partition = put_times(log, 1, 2, 5, 4, 9, is_known=is_known)
    assert head_start(log.store, partition, NOW_MS + limit) == start


def test_segment_without_an_index_is_as_old_as_its_object(log):
    partition = put_times(log, 1, 2)
    log.store.delete([object_keys.index_key("default", TOPIC, 0, 1)])
    assert head_start(log.store, partition, NOW_MS) == 0
    assert head_start(log.store, partition, NOW_MS - 1) == 0
    assert head_start(log.store, partition, NOW_MS + 1) is None


def test_dirty_since_is_the_time_of_the_first_dirty_batch(log):
    partition = put_times(log, 1, 2, 5)
    assert dirty_since_ms(log.store, Candidate(partition, CleanupPolicy(), 1, 3)) == NOW_MS + 2
    assert dirty_since_ms(log.store, Candidate(partition, CleanupPolicy(), 3, 3)) is None
