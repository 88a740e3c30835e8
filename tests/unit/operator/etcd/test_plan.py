"""Tests of the plan: priorities, bootstrap modes, replicas, restarts and defragmentation."""

import pytest
from msgspec.structs import replace

from kafscale.metadata.store.etcd.maintenance import Alarm
from kafscale.operator.etcd.membership import (
    AddMember,
    Defragment,
    FreeSpace,
    RemoveMember,
    RestartPod,
)
from kafscale.operator.etcd.plan import (
    SIZE_BYTES_MIN,
    defragmentation,
    free_space,
    next_bootstrap,
    plan,
    replicas,
)
from kafscale.operator.etcd.view import PodView
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapConfig, BootstrapMode
from unit.operator.etcd.views import OLD, crashing, entry, member, status, unresponsive, view

FORMING = BootstrapConfig(BootstrapMode.FORMING, "all", "key")


def outdated(index, **more):
    pod = PodView(uid=f"uid-{index}", checksum=OLD, is_ready=True)
    return member(index, pod=replace(pod, **more))


def test_a_healthy_cluster_is_left_alone():
    assert plan(view()) is None


def test_forming_cluster_is_left_alone():
    state = view(large(0), crashing(1), member(2), bootstrap=FORMING)
    assert plan(state) is None


def test_priorities_are_space_then_membership_then_restarts_then_defragmentation():
    full = Alarm(100, "NOSPACE")
    lost = view(outdated(0), crashing(1), outdated(2), alarms=(full,))
    assert isinstance(plan(lost), FreeSpace)
    assert plan(view(large(0), unresponsive(1, has_volume=False), outdated(2))) == RemoveMember(
        1, 101, "its volume is gone"
    )
    assert plan(view(large(0), outdated(1), outdated(2))) == RestartPod(2, "uid-2")
    assert plan(view(large(0), member(1), member(2))) == Defragment(0)


def test_outdated_pods_are_restarted_one_at_a_time_with_the_leader_last():
    assert plan(view(outdated(0), outdated(1), outdated(2))) == RestartPod(2, "uid-2")
    assert plan(view(outdated(0), outdated(1), member(2))) == RestartPod(1, "uid-1")
    assert plan(view(outdated(0), member(1), member(2))) == RestartPod(0, "uid-0")


@pytest.mark.parametrize(
    "other",
    [
        unresponsive(2),
        outdated(2, is_ready=False),
        outdated(2, is_terminating=True, is_ready=False),
    ],
)
def test_no_pod_is_restarted_while_another_is_unavailable(other):
    assert plan(view(outdated(0), outdated(1), other)) is None


def test_outdated_unresponsive_pod_is_restarted_even_without_quorum():
    broken = unresponsive(1, PodView(uid="uid-1", checksum=OLD))
    for state in (
        view(unresponsive(0), broken, unresponsive(2), has_member_list=False),
        view(unresponsive(0), broken, unresponsive(2), has_member_list=False, bootstrap=FORMING),
    ):
        assert plan(state) == RestartPod(1, "uid-1")
    slow = unresponsive(1, PodView(uid="uid-1", checksum=OLD, is_ready=True))
    assert plan(view(unresponsive(0), slow, unresponsive(2), has_member_list=False)) is None


def test_bootstrap_is_formed_once_all_members_have_started():
    formed = BootstrapConfig(BootstrapMode.FORMED, "", "key")
    assert next_bootstrap(view(bootstrap=FORMING), "list") == formed
    not_started = member(2, entry=entry(2, client_urls=()))
    assert (
        next_bootstrap(view(member(0), member(1), not_started, bootstrap=FORMING), "list")
        == FORMING
    )
    absent = view(member(0), member(1), unresponsive(2), bootstrap=FORMING)
    assert next_bootstrap(absent, "list") == FORMING
    without_list = view(unresponsive(0, entry=None), has_member_list=False, bootstrap=FORMING)
    assert next_bootstrap(without_list, "") == FORMING


def test_bootstrap_is_joining_for_a_member_that_has_never_started():
    new_member = unresponsive(1, entry=entry(1, name="", client_urls=(), is_learner=True))
    state = view(member(0), new_member, member(2))
    joining = BootstrapConfig(BootstrapMode.JOINING, "list")
    assert next_bootstrap(state, "list") == joining
    learner = member(1, entry=entry(1, is_learner=True))
    assert next_bootstrap(view(member(0), learner, bootstrap=joining), "list") == BootstrapConfig(
        BootstrapMode.FORMED
    )


def test_bootstrap_is_kept_without_a_member_list():
    for current in (
        BootstrapConfig(BootstrapMode.FORMED),
        BootstrapConfig(BootstrapMode.JOINING, "list"),
    ):
        state = view(unresponsive(0, entry=None), has_member_list=False, bootstrap=current)
        assert next_bootstrap(state, "") == current


def test_data_loss_does_not_change_the_bootstrap_mode():
    state = view(member(0), crashing(1), member(2))
    assert next_bootstrap(state, "list").mode is BootstrapMode.FORMED
    gone = view(member(0), crashing(1, entry=None), member(2))
    assert next_bootstrap(gone, "list").mode is BootstrapMode.FORMED
    assert plan(gone) == AddMember(1)


def test_replicas_shrink_only_after_members_are_removed():
    assert replicas(view(desired=1), 3) == 3
    assert replicas(view(member(0), desired=1), 3) == 1
    assert (
        replicas(view(member(0), unresponsive(1, entry=None), unresponsive(2, entry=None)), 1) == 3
    )
    assert replicas(view(member(0), desired=1, has_member_list=False), 3) == 3
    assert replicas(view(unresponsive(0, entry=None), has_member_list=False), 0) == 1


LARGE = {"database_bytes": SIZE_BYTES_MIN + 2, "database_used_bytes": SIZE_BYTES_MIN // 2}


def large(index, **more):
    return member(index, status=status(index, **(LARGE | more)))


def test_followers_are_defragmented_before_the_leader():
    assert defragmentation(view(large(0), large(1), large(2))) == Defragment(1)
    assert defragmentation(view(large(0), member(1), member(2))) == Defragment(0)


@pytest.mark.parametrize(
    "other",
    [
        large(2, database_bytes=SIZE_BYTES_MIN),
        large(2, database_used_bytes=SIZE_BYTES_MIN // 2 + 1),
        member(2),
    ],
)
def test_small_or_used_databases_are_not_defragmented(other):
    assert defragmentation(view(member(0), member(1), other)) is None


def test_defragmentation_needs_healthy_members_and_the_setting():
    assert defragmentation(view(member(0), large(1), unresponsive(2))) is None
    assert defragmentation(view(member(0), large(1), member(2), may_defragment=False)) is None


def test_space_is_freed_even_if_another_member_is_unavailable():
    full = Alarm(101, "NOSPACE")
    assert free_space(view()) is None
    assert free_space(view(member(0), member(1), unresponsive(2), alarms=(full,))) == FreeSpace(
        (full,), (1,)
    )
    assert free_space(view(unresponsive(0), member(1), unresponsive(2), alarms=(full,))) is None
    assert free_space(view(alarms=(Alarm(101, "CORRUPT"),))) is None


def test_space_alarm_of_a_removed_member_is_disarmed():
    outdated = Alarm(7, "NOSPACE")
    assert free_space(view(alarms=(outdated,))) == FreeSpace((outdated,), ())


def test_space_is_freed_on_all_full_members_with_the_leader_last():
    alarms = tuple(Alarm(100 + index, "NOSPACE") for index in range(3))
    assert free_space(view(alarms=alarms)) == FreeSpace(alarms, (1, 2, 0))
    assert free_space(view(member(0), member(1, entry=entry(1, is_learner=True)), alarms=alarms))
