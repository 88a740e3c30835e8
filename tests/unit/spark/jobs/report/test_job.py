"""What the report makes of what was counted."""

from pathlib import Path

import pytest

from kafscale.errors import UnknownTopicError
from kafscale.spark.jobs.report import job
from kafscale.spark.jobs.report.cost import GB
from kafscale.spark.jobs.report.inventory import DAY_MS, Tally
from kafscale.spark.jobs.report.job import GroupLag, ReportSettings
from kafscale.spark.jobs.report.wal_activity import WalActivity, activity
from kafscale.spark.plan.offset_map import CatalogTopic, OffsetMap, PartitionOffsets
from kafscale.spark.source.location import Location
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys
from unit.spark.stored_log import NAMESPACE, TOPIC, blocking, put_segment, put_wal

NOW_MS = 20_000 * DAY_MS + DAY_MS // 2
TODAY = NOW_MS // DAY_MS
LOCATION = Location(namespace=NAMESPACE, directory="nowhere")
QUIET = WalActivity(0, None)


def spread(items, function):
    return [function(item) for item in items]


def made(*tallies, configs=None, writing=QUIET, lags=None, **settings):
    names = {tally.place[0] for tally in tallies}
    known = {name: CatalogTopic(name, b"", 1, configs or {}) for name in names}
    partitions = {tally.place: PartitionOffsets(*tally.place, 0, 0) for tally in tallies}
    return job.assemble(
        ReportSettings(location=LOCATION, **settings),
        OffsetMap(partitions, known),
        tallies,
        writing,
        now_ms=NOW_MS,
        lags=lags,
    )


def tally(partition=0, topic=TOPIC, *, days=None, **counted):
    made = Tally((topic, partition), **counted)
    made.days.update(days or {})
    return made


def local(tmp_path: Path) -> Location:
    (tmp_path / "objects").mkdir()
    return Location.parse(str(tmp_path))


def test_a_store_becomes_a_report(tmp_path):
    location = local(tmp_path)
    with location.open() as store:
        put_segment(store, range(20))
        put_segment(store, range(20, 25))
        put_segment(store, range(20), partition=1)
        put_segment(store, range(5), topic="other")
        put_wal(store, 0, range(25, 40))
    found = job.make(ReportSettings(location=location), spread, clock=lambda: NOW_MS)
    orders, other = found.topics
    assert (orders.topic, orders.partitions, orders.records, orders.segments) == (TOPIC, 2, 60, 3)
    assert (other.topic, other.records, other.wal_bytes) == ("other", 5, 0)
    assert orders.compression == 1.0
    assert orders.codecs == {"none": 1.0}
    assert orders.skew > 1
    assert 0 < orders.wal_share < 1
    assert found.records == 65
    assert sum(one.segments for one in found.sizes) == 4
    assert [profile.name for profile in found.profiles][-2:] == ["latency", "cost"]
    assert found.lags is None
    assert not found.damaged


def test_topics_can_be_chosen_and_must_exist(tmp_path):
    location = local(tmp_path)
    with location.open() as store:
        put_segment(store, range(20))
        put_segment(store, range(20), topic="other")
    chosen = ReportSettings(location=location, topics=(TOPIC,))
    found = job.make(chosen, spread, clock=lambda: NOW_MS)
    assert [one.topic for one in found.topics] == [TOPIC]
    missing = ReportSettings(location=location, topics=(TOPIC, "absent"))
    with pytest.raises(UnknownTopicError, match="absent"):
        job.make(missing, spread, clock=lambda: NOW_MS)


def test_an_empty_store_is_a_report_too(tmp_path):
    found = job.make(ReportSettings(location=local(tmp_path)), spread, clock=lambda: NOW_MS)
    assert found.topics == found.sizes == []
    assert found.days == {}
    assert found.profiles[-1].bill.storage == 0


def test_a_topic_that_has_partitions_but_no_records_is_listed(tmp_path):
    location = local(tmp_path)
    with location.open() as store:
        topics = [topic_catalog.CatalogTopic("empty", "00" * 16, 3)]
        store.put(object_keys.catalog_key(NAMESPACE), [topic_catalog.encode(topics)])
    found = job.make(ReportSettings(location=location), spread, clock=lambda: NOW_MS)
    (empty,) = found.topics
    assert (empty.partitions, empty.records, empty.skew, empty.oldest_ms) == (3, 0, 1.0, None)
    assert empty.compression is None


def test_compression_and_codecs_are_those_of_all_partitions():
    first = tally(0, sampled_bytes=100, inflated_bytes=400)
    second = tally(1, sampled_bytes=300, inflated_bytes=400)
    first.codecs.update(zstd=300)
    second.codecs.update(none=100)
    (topic,) = made(first, second).topics
    assert topic.compression == 2.0
    assert topic.codecs == {"zstd": 0.75, "none": 0.25}


def test_skew_compares_the_largest_partition_with_the_average():
    sizes = (6, 2, 1)
    (topic,) = made(*(tally(index, segment_bytes=size) for index, size in enumerate(sizes))).topics
    assert topic.skew == 2.0


@pytest.mark.parametrize(
    ("days", "oldest_ms", "expected"),
    [
        ({}, None, 0.0),
        # Half a day of traffic is no habit yet.
        ({TODAY: 500}, NOW_MS - DAY_MS // 2, 500),
        ({TODAY - 1: 300, TODAY: 300}, NOW_MS - 2 * DAY_MS + DAY_MS // 2, 400),
        # A week, of which half of the last day is still to come.
        ({TODAY - number: 650 for number in range(30)}, 0, 700),
        # What came earlier does not count.
        ({TODAY - 8: 10_000}, 0, 0),
    ],
)
def test_what_comes_in_a_day_is_reckoned_over_a_week_at_most(days, oldest_ms, expected):
    assert job.bytes_per_day(days, oldest_ms, NOW_MS) == expected


@pytest.mark.parametrize(
    ("configs", "days", "expected_bytes"),
    [
        ({}, 7, 700),
        ({"retention.ms": str(3 * DAY_MS)}, 3, 300),
        ({"retention.ms": "-1"}, None, 5000),
        ({"retention.bytes": "50"}, 7, 50),
        ({"cleanup.policy": "compact"}, None, 5000),
    ],
)
def test_retention_decides_what_will_be_stored(configs, days, expected_bytes):
    counted = tally(days={TODAY: 100}, segment_bytes=5000, segments=1, oldest_ms=NOW_MS)
    (topic,) = made(counted, configs=configs).topics
    assert topic.retention_days == days
    assert topic.expected_bytes == expected_bytes


def test_the_bill_is_for_what_will_be_stored_and_for_what_is_stored_now():
    counted = tally(
        days={TODAY: 100 * GB},
        segment_bytes=900 * GB,
        segments=9000,
        records=10**10,
        oldest_ms=NOW_MS,
    )
    found = made(counted, writing=WalActivity(3, 1000.0))
    now, latency, cost = found.profiles
    assert [one.name for one in found.profiles] == ["now", "latency", "cost"]
    assert now.bill.storage == pytest.approx(900 * 0.023)
    assert latency.bill.storage == cost.bill.storage == pytest.approx(16.10)
    assert now.puts_per_day.wal == 1000
    assert latency.puts_per_day.wal == 518_400
    assert cost.is_within_budget
    assert found.brokers == 3


def test_days_are_without_gaps():
    found = made(tally(days={TODAY: 3, TODAY - 2: 1}), tally(topic="other", days={TODAY: 4}))
    assert list(found.days.values()) == [1, 0, 7]
    assert next(iter(found.days)) == "2024-10-02"


def test_damage_and_lag_are_handed_on():
    counted = tally()
    counted.damaged.append("a key: a reason")
    lags = [GroupLag("b", TOPIC, 2, 1), GroupLag("a", TOPIC, 7, 1)]
    found = made(counted, lags=lags)
    assert found.damaged == ["a key: a reason"]
    assert [one.group for one in found.lags] == ["a", "b"]


# --- the WAL --------------------------------------------------------------------------------------


def test_how_busy_brokers_are_shows_in_the_numbers_of_their_objects():
    with blocking() as store:
        for broker_id, sequence in [(0, 100), (0, 160), (1, 7), (1, 7 + 60)]:
            put_wal(store, sequence, range(5), broker_id=broker_id)
        found = store.run(lambda opened: activity(opened, NAMESPACE, DAY_MS // 2))
    assert found == WalActivity(2, 240.0)


@pytest.mark.parametrize(("now_ms", "brokers"), [(1000, 1), (2 * DAY_MS, 0)])
def test_what_was_written_just_now_or_long_ago_says_nothing_about_a_day(now_ms, brokers):
    with blocking() as store:
        put_wal(store, 0, range(5))
        found = store.run(lambda opened: activity(opened, NAMESPACE, now_ms))
    assert found == WalActivity(brokers, None)
