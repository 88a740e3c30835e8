"""The cost model gives the numbers of the specification for its workload."""

from dataclasses import replace

import pytest

from kafscale.config.sections.storage import Storage
from kafscale.spark.jobs.report import cost
from kafscale.spark.jobs.report.cost import GB, MB, Prices, Traffic

APPENDIX = Traffic(bytes_per_day=100 * GB, stored_bytes=700 * GB, brokers=3, segment_bytes=4 * MB)
"""100 GB a day, 7 days, segments of 4 MB, 3 brokers."""
PRICES = Prices()


def test_model_reproduces_the_appendix():
    counted = replace(APPENDIX, has_indexes=False, gets_per_day=100_000)
    profile = cost.profile("appendix", 0, counted, PRICES)
    assert profile.puts_per_day.total == 25_000
    assert profile.bill.storage == pytest.approx(16.10)
    assert profile.bill.puts == pytest.approx(3.75)
    assert profile.bill.gets == pytest.approx(1.20)
    assert profile.bill.transfer == 0
    assert profile.bill.s3 == pytest.approx(21.05)
    assert profile.bill.total == pytest.approx(111.05)
    assert profile.is_within_budget


def test_indexes_double_the_puts_and_exceed_the_budget():
    profile = cost.profile("appendix", 0, APPENDIX, PRICES)
    assert profile.puts_per_day.total == 50_000
    assert not profile.is_within_budget


def test_latency_profile_writes_two_objects_per_second_and_broker():
    profile = cost.latency(replace(APPENDIX, segment_bytes=100 * MB), PRICES)
    assert profile.puts_per_day.wal == 518_400
    assert profile.wal_interval_seconds == 0.5
    assert profile.wal_object_bytes == pytest.approx(193_000, rel=0.01)
    assert not profile.is_within_budget


def test_latency_profile_writes_more_objects_if_they_are_full():
    busy = Traffic(bytes_per_day=10_000 * GB, stored_bytes=0)
    profile = cost.latency(busy, PRICES)
    assert profile.wal_object_bytes == cost.WAL_BYTES_MAX
    assert profile.puts_per_day.wal > cost.DAY_S * cost.WAL_PUTS_PER_SECOND


@pytest.mark.parametrize("build_profile", [cost.latency, cost.cost])
def test_wal_objects_are_limited_by_records(build_profile):
    quiet = Traffic(bytes_per_day=1000, stored_bytes=0, records_per_day=10, segment_bytes=1000)
    profile = build_profile(quiet, PRICES)
    assert profile.puts_per_day.wal == 10
    assert profile.wal_object_bytes == 100


def test_cost_profile_writes_every_ten_seconds():
    endless = replace(APPENDIX, segment_bytes=float("inf"), gets_per_day=0)
    assert cost.cost(endless, PRICES).wal_interval_seconds == pytest.approx(10.4, abs=0.05)


@pytest.mark.parametrize("merged_bytes", [0, 512 * MB])
@pytest.mark.parametrize("retried", [0.0, 0.02])
def test_cost_profile_waits_longer_if_all_puts_count(merged_bytes, retried):
    traffic = replace(APPENDIX, segment_bytes=100 * MB, merged_bytes=merged_bytes, retried=retried)
    profile = cost.cost(traffic, PRICES)
    assert profile.wal_interval_seconds > 10.4
    assert profile.puts_per_day.total == pytest.approx(25_000)
    assert profile.is_within_budget
    assert profile.bill.puts == pytest.approx(3.75)


def test_cost_profile_with_too_small_segments():
    profile = cost.cost(APPENDIX, PRICES)
    assert profile.puts_per_day.segments + profile.puts_per_day.indexes == 50_000
    assert profile.wal_interval_seconds == 3600
    assert not profile.is_within_budget


def test_merges_and_retries_cost_puts():
    plain = Traffic(bytes_per_day=100 * GB, stored_bytes=0)
    merged = cost.latency(replace(plain, merged_bytes=1000 * MB), PRICES).puts_per_day
    retried = cost.latency(replace(plain, retried=0.5), PRICES).puts_per_day
    before = cost.latency(plain, PRICES).puts_per_day
    assert merged.total - before.total == 200
    assert retried.total == pytest.approx(before.total * 1.5)


def test_reads_cost_a_get_per_block_and_per_index():
    traffic = Traffic(
        bytes_per_day=40 * cost.BLOCK_BYTES,
        stored_bytes=0,
        segment_bytes=10 * cost.BLOCK_BYTES,
        cold_reads=3,
    )
    assert cost.latency(traffic, PRICES).gets_per_day == 3 * (40 + 4)


def test_reads_of_three_groups_stay_within_the_appendix():
    at_the_end = replace(APPENDIX, segment_bytes=Storage().segment_bytes, cold_reads=1)
    assert cost.cost(at_the_end, PRICES).gets_per_day < 100_000


def test_prices_are_configurable():
    prices = Prices(storage_gb_month=1, put_thousand=2, get_thousand=3, broker_month=4)
    profile = cost.bill(
        stored_bytes=5 * GB, puts_per_day=1000, gets_per_day=100, brokers=2, prices=prices
    )
    assert (profile.storage, profile.puts, profile.gets, profile.brokers) == (5, 60, 9, 8)
    assert profile.total == 82


def test_log_without_traffic_costs_storage_only():
    idle = Traffic(bytes_per_day=0, stored_bytes=10 * GB, segment_bytes=1)
    profile = cost.profile("idle", 0, idle, PRICES)
    assert profile.bill.s3 == pytest.approx(0.23)
    assert profile.wal_interval_seconds is None
