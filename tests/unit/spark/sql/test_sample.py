"""Records are looked at at both ends of a topic, none of them twice."""

from kafscale.spark.log.bucket_listing import list_bucket
from kafscale.spark.source.location import Location
from kafscale.spark.sql import sample
from unit.spark.stored_log import NAMESPACE, TOPIC, put_segment, value_of


def sampled(tmp_path, *ranges, partitions=1):
    (tmp_path / "objects").mkdir()
    location = Location.parse(str(tmp_path))
    with location.open() as store:
        for partition in range(partitions):
            for offsets in ranges:
                put_segment(store, offsets, partition=partition)
        offset_map = list_bucket(store, NAMESPACE)
    _, values = sample.sample(location, offset_map, TOPIC)
    return values.to_pylist()


def test_a_small_topic_is_looked_at_as_a_whole(tmp_path):
    assert sampled(tmp_path, range(30)) == [value_of(offset) for offset in range(30)]


def test_of_a_large_one_the_first_and_the_last_records_are(tmp_path):
    half = sample.RECORDS_MAX // 2
    end = 4 * half
    found = sampled(tmp_path, range(end))
    assert found == [value_of(offset) for offset in (*range(half), *range(end - half, end))]


def test_every_partition_has_its_share(tmp_path):
    found = sampled(tmp_path, range(100), partitions=100)
    assert len(found) == 100 * 2 * sample.RECORDS_MIN
    assert found.count(value_of(0)) == found.count(value_of(99)) == 100


def test_an_empty_topic_shows_nothing(tmp_path):
    assert sampled(tmp_path) == []
