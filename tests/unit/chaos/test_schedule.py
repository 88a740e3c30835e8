"""Fault schedules: deterministic, bounded in time, and without overlapping targets."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.schedule import WARM_UP_S, ClusterShape, Outage, plan

shapes = st.sampled_from(
    [ClusterShape((1,), 0, 5), ClusterShape((1, 2, 3), 1, 5), ClusterShape((1, 2, 3), 3, 10)]
)
seeds = st.integers(0, 2**32)
durations = st.integers(5, 300)


@given(seeds, durations, shapes)
def test_schedule_is_determined_by_its_seed(seed, duration_s, shape):
    assert plan(seed, duration_s, shape) == plan(seed, duration_s, shape)


@given(seeds, durations, shapes)
def test_faults_begin_after_the_warm_up_and_end_in_time(seed, duration_s, shape):
    for step in plan(seed, duration_s, shape):
        assert WARM_UP_S <= step.begin_s < step.end_s <= duration_s


@given(seeds, durations, shapes)
def test_at_most_two_faults_overlap_and_have_different_targets(seed, duration_s, shape):
    steps = plan(seed, duration_s, shape)
    for step in steps:
        together = [each for each in steps if each.begin_s <= step.begin_s < each.end_s]
        assert len(together) <= 2
        for one, other in combinations(together, 2):
            assert not one.fault.targets & other.fault.targets


@pytest.mark.parametrize("etcd_members", [0, 3])
def test_long_schedule_has_all_kinds_of_faults(etcd_members):
    shape = ClusterShape((1, 2, 3), etcd_members, 10)
    kinds = {step.fault.kind for step in plan(0, 5000, shape)}
    expected = {"broker kill", "broker pause", "broker stop", "clients cut off", "s3 refused"}
    assert kinds > expected | {"s3 late", "s3 kill", "s3 pause"}
    assert ("etcd late" in kinds) == bool(etcd_members)
    assert any(kind.startswith("etcd") for kind in kinds) == bool(etcd_members)


def test_pauses_are_shorter_and_longer_than_the_lease():
    shape = ClusterShape((1, 2, 3), 3, 10)
    pauses = [step for step in plan(0, 5000, shape) if step.fault.kind == "broker pause"]
    assert any(step.end_s - step.begin_s > shape.lease_s for step in pauses)
    assert any(step.end_s - step.begin_s < shape.lease_s / 2 for step in pauses)


@given(seeds)
def test_schedule_begins_with_the_outages_in_full(seed):
    shape = ClusterShape((1, 2, 3), 3, 5)
    steps = plan(seed, 1500, shape, [Outage("etcd", 600), Outage("s3", 300)])
    outages = [step for step in steps if step.fault.kind.endswith("outage")]
    assert [step.fault.kind for step in outages] == ["etcd outage", "s3 outage"]
    assert [step.end_s - step.begin_s for step in outages] == [600, 300]
    assert outages[0].begin_s == WARM_UP_S
    assert not outages[0].fault.targets & outages[1].fault.targets


def test_requests_are_not_later_than_the_shape_allows():
    shape = ClusterShape((1, 2, 3), 3, 5, late_s_max=20)
    late = [step.fault.fault for step in plan(0, 5000, shape) if step.fault.kind.endswith("late")]
    assert {fault.late_ms_max for fault in late} == {5_000, 20_000}
