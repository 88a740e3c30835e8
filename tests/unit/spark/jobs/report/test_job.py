"""The report computed from measured usages."""

from pathlib import Path

import pytest

from kafscale.errors import UnknownTopicError
from kafscale.spark.jobs.report import job
from kafscale.spark.jobs.report.cost import GB
from kafscale.spark.jobs.report.inventory import DAY_MS, PartitionUsage, WalActivity, wal_activity
from kafscale.spark.jobs.report.job import GroupLag, ReportSettings
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.spark.read.location import Location
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys
from kafscale.storage.topic_catalog import CatalogTopic
from unit.spark.stored_log import NAMESPACE, TOPIC, blocking, put_segment, put_wal

NOW_MS = 20_000 * DAY_MS + DAY_MS // 2
TODAY = NOW_MS // DAY_MS
LOCATION = Location(namespace=NAMESPACE, directory="nowhere")
NO_ACTIVITY = WalActivity(0, None)


def run_tasks(items, function):
    return [function(item) for item in items]


def build_report(*usages, configs=None, activity=NO_ACTIVITY, lags=None, **settings):
    names = {usage.topic_partition[0] for usage in usages}
    known = {name: CatalogTopic(name, "", 1, configs or {}) for name in names}
    keys = [usage.topic_partition for usage in usages]
    partitions = {key: PartitionOffsets(*key, 0, 0) for key in keys}
    return job.assemble(
        ReportSettings(location=LOCATION, **settings),
        OffsetMap(partitions, known),
        usages,
        activity,
        now_ms=NOW_MS,
        lags=lags,
    )


def usage_of(partition=0, topic=TOPIC, *, days=None, **fields):
    usage = PartitionUsage((topic, partition), **fields)
    usage.days.update(days or {})
    return usage


def local(tmp_path: Path) -> Location:
    (tmp_path / "objects").mkdir()
    return Location.parse(str(tmp_path))


def test_report_on_a_namespace(tmp_path):
    location = local(tmp_path)
    with location.open() as store:
        put_segment(store, range(20))
        put_segment(store, range(20, 25))
        put_segment(store, range(20), partition=1)
        put_segment(store, range(5), topic="other")
        put_wal(store, 0, range(25, 40))
    report = job.build_report(ReportSettings(location=location), run_tasks, clock=lambda: NOW_MS)
    orders, other = report.topics
    assert (orders.topic, orders.partitions, orders.records, orders.segments) == (TOPIC, 2, 60, 3)
    assert (other.topic, other.records, other.wal_bytes) == ("other", 5, 0)
    assert orders.compression == 1.0
    assert orders.codecs == {"none": 1.0}
    assert orders.skew > 1
    assert 0 < orders.wal_share < 1
    assert report.records == 65
    assert sum(one.segments for one in report.sizes) == 4
    assert [profile.name for profile in report.profiles][-2:] == ["latency", "cost"]
    assert report.lags is None
    assert not report.damaged


def test_selected_topics_must_exist(tmp_path):
    location = local(tmp_path)
    with location.open() as store:
        put_segment(store, range(20))
        put_segment(store, range(20), topic="other")
    chosen = ReportSettings(location=location, topics=(TOPIC,))
    report = job.build_report(chosen, run_tasks, clock=lambda: NOW_MS)
    assert [one.topic for one in report.topics] == [TOPIC]
    missing = ReportSettings(location=location, topics=(TOPIC, "absent"))
    with pytest.raises(UnknownTopicError, match="absent"):
        job.build_report(missing, run_tasks, clock=lambda: NOW_MS)


def test_report_on_an_empty_namespace(tmp_path):
    report = job.build_report(
        ReportSettings(location=local(tmp_path)), run_tasks, clock=lambda: NOW_MS
    )
    assert report.topics == report.sizes == []
    assert report.days == {}
    assert report.profiles[-1].bill.storage == 0


def test_topic_without_records_is_listed(tmp_path):
    location = local(tmp_path)
    with location.open() as store:
        topics = [topic_catalog.CatalogTopic("empty", "00" * 16, 3)]
        store.put(object_keys.catalog_key(NAMESPACE), [topic_catalog.encode(topics)])
    report = job.build_report(ReportSettings(location=location), run_tasks, clock=lambda: NOW_MS)
    (empty,) = report.topics
    assert (empty.partitions, empty.records, empty.skew, empty.oldest_ms) == (3, 0, 1.0, None)
    assert empty.compression is None


def test_compression_and_codecs_cover_all_partitions():
    first = usage_of(0, sampled_bytes=100, inflated_bytes=400)
    second = usage_of(1, sampled_bytes=300, inflated_bytes=400)
    first.codecs.update(zstd=300)
    second.codecs.update(none=100)
    (topic,) = build_report(first, second).topics
    assert topic.compression == 2.0
    assert topic.codecs == {"zstd": 0.75, "none": 0.25}


def test_skew_compares_the_largest_partition_with_the_average():
    sizes = (6, 2, 1)
    (topic,) = build_report(
        *(usage_of(index, segment_bytes=size) for index, size in enumerate(sizes))
    ).topics
    assert topic.skew == 2.0


@pytest.mark.parametrize(
    ("days", "oldest_ms", "expected"),
    [
        ({}, None, 0.0),
        # Less than a day counts as a day.
        ({TODAY: 500}, NOW_MS - DAY_MS // 2, 500),
        ({TODAY - 1: 300, TODAY: 300}, NOW_MS - 2 * DAY_MS + DAY_MS // 2, 400),
        # A week, of which half of the last day is left.
        ({TODAY - number: 650 for number in range(30)}, 0, 700),
        # Earlier days do not count.
        ({TODAY - 8: 10_000}, 0, 0),
    ],
)
def test_bytes_per_day_are_averaged_over_at_most_a_week(days, oldest_ms, expected):
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
def test_expected_bytes_depend_on_retention(configs, days, expected_bytes):
    counted = usage_of(days={TODAY: 100}, segment_bytes=5000, segments=1, oldest_ms=NOW_MS)
    (topic,) = build_report(counted, configs=configs).topics
    assert topic.retention_days == days
    assert topic.expected_bytes == expected_bytes


def test_current_profile_has_stored_bytes_and_others_expected_bytes():
    counted = usage_of(
        days={TODAY: 100 * GB},
        segment_bytes=900 * GB,
        segments=9000,
        records=10**10,
        oldest_ms=NOW_MS,
    )
    report = build_report(counted, activity=WalActivity(3, 1000.0))
    now, latency, cost = report.profiles
    assert [one.name for one in report.profiles] == ["now", "latency", "cost"]
    assert now.bill.storage == pytest.approx(900 * 0.023)
    assert latency.bill.storage == cost.bill.storage == pytest.approx(16.10)
    assert now.puts_per_day.wal == 1000
    assert latency.puts_per_day.wal == 518_400
    assert cost.is_within_budget
    assert report.brokers == 3


def test_days_have_no_gaps():
    report = build_report(
        usage_of(days={TODAY: 3, TODAY - 2: 1}), usage_of(topic="other", days={TODAY: 4})
    )
    assert list(report.days.values()) == [1, 0, 7]
    assert next(iter(report.days)) == "2024-10-02"


def test_damage_and_lag_are_included():
    counted = usage_of()
    counted.damaged.append("a key: a reason")
    lags = [GroupLag("b", TOPIC, 2, 1), GroupLag("a", TOPIC, 7, 1)]
    report = build_report(counted, lags=lags)
    assert report.damaged == ["a key: a reason"]
    assert [one.group for one in report.lags] == ["a", "b"]


# --- WAL ------------------------------------------------------------------------------------------


def test_wal_activity_is_computed_from_sequences():
    with blocking() as store:
        for broker_id, sequence in [(0, 100), (0, 160), (1, 7), (1, 7 + 60)]:
            put_wal(store, sequence, range(5), broker_id=broker_id)
        activity = store.run(lambda objects: wal_activity(objects, NAMESPACE, DAY_MS // 2))
    assert activity == WalActivity(2, 240.0)


@pytest.mark.parametrize(("now_ms", "brokers"), [(1000, 1), (2 * DAY_MS, 0)])
def test_wal_activity_needs_objects_of_the_last_day_over_some_time(now_ms, brokers):
    with blocking() as store:
        put_wal(store, 0, range(5))
        activity = store.run(lambda objects: wal_activity(objects, NAMESPACE, now_ms))
    assert activity == WalActivity(brokers, None)
