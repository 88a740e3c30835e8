"""Tests of the view built from Kubernetes objects and members' responses."""

import pytest

from kafscale.metadata.store.etcd.maintenance import Alarm, EtcdMember, MemberStatus
from kafscale.operator.etcd.observe import (
    MemberResponses,
    Objects,
    build_view,
    has_volume,
    pod_view,
)
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd import stateful_set
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapConfig, BootstrapMode
from kafscale.operator.manifests.names import Platform
from unit.operator.manifests.clusters import cluster

PLATFORM = Platform()
CLUSTER = cluster({"brokers": {}, "s3": {"bucket": "records"}}, "shop")
STATUS = MemberStatus("3.6.5", 2, 1, 11, 11, 7, 42)


def entry(index, number=11, **more):
    url = stateful_set.peer_url(CLUSTER, PLATFORM, index)
    return EtcdMember(number, "", (url,), **more)


def view_of(member_list=None, *, pods=(), claims=(), statuses=None, alarms=()):
    objects = Objects(
        bootstrap=None,
        stateful_set=None,
        pods={name: {"metadata": {"name": name, "uid": f"uid of {name}"}} for name in pods},
        claims={name: {"metadata": {"name": name}} for name in claims},
        secrets={},
    )
    responses = MemberResponses(statuses or {}, {}, member_list, alarms)
    log_line = BootstrapConfig(BootstrapMode.FORMED)
    return build_view(CLUSTER, PLATFORM, objects, responses, bootstrap=log_line, trust_checksum="t")


def test_view_without_objects_has_three_empty_members():
    observed = view_of()
    assert [each.name for each in observed.members] == ["shop-etcd-0", "shop-etcd-1", "shop-etcd-2"]
    assert observed.healthy == observed.listed_members == []
    assert not observed.has_member_list
    assert not any(each.has_volume or each.pod for each in observed.members)


def test_member_has_its_entry_response_pod_and_volume():
    url = stateful_set.client_url(CLUSTER, PLATFORM, 1)
    alarm = Alarm(11, "NOSPACE")
    observed = view_of(
        [entry(1)],
        pods=["shop-etcd-1"],
        claims=["data-shop-etcd-1"],
        statuses={url: STATUS},
        alarms=[alarm],
    )
    _, member_view, _ = observed.members
    assert member_view.entry == entry(1)
    assert member_view.status == STATUS
    assert member_view.has_volume
    assert member_view.pod
    assert member_view.pod.uid == "uid of shop-etcd-1"
    assert member_view.pod.checksum != observed.checksum
    assert member_view.is_healthy
    assert observed.listed_members == [member_view]
    assert observed.alarms == (alarm,)


def test_surplus_members_are_in_the_view_while_listed():
    observed = view_of([entry(4)])
    assert len(observed.members) == 5
    assert observed.desired == 3


def test_listed_members_with_foreign_addresses_are_unknown():
    unknown = EtcdMember(9, "who", ("https://elsewhere:2380",))
    observed = view_of([entry(0), unknown, EtcdMember(8, "", ())])
    assert [each.id for each in observed.unknown_members] == [9, 8]
    assert len(observed.listed_members) == 1


def pod(*containers, ready="False", **metadata):
    return {
        "metadata": {"name": "e-0", "uid": "u", **metadata},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": list(containers),
        },
    }


def terminated(**more):
    return {"lastState": {"terminated": {"exitCode": 1, **more}}}


def test_healthy_pod():
    observed = pod_view(pod(ready="True", annotations={names.CONFIG_CHECKSUM: "c"}))
    assert (observed.uid, observed.checksum, observed.is_ready) == ("u", "c", True)
    assert not observed.is_crashing
    assert not observed.is_terminating
    assert observed.reason == ""


def test_new_pod():
    observed = pod_view({"metadata": {"name": "e-0", "uid": "u"}})
    assert not observed.is_ready
    assert not observed.is_crashing


@pytest.mark.parametrize(
    "container", [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}, {"restartCount": 3}]
)
def test_crashing_pod(container):
    assert pod_view(pod(container)).is_crashing
    assert not pod_view(pod(container, ready="True")).is_crashing


def test_pod_restarted_a_few_times_is_not_crashing():
    assert not pod_view(pod({"restartCount": 2, "state": {"running": {}}})).is_crashing


def test_failing_restore_container_counts_as_crashing():
    member_view = pod()
    member_view["status"]["initContainerStatuses"] = [
        {"restartCount": 9, **terminated(message="no bucket")}
    ]
    assert pod_view(member_view).is_crashing
    assert pod_view(member_view).reason == "no bucket"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"message": "first\nlast line\n", "reason": "Error"}, "last line"),
        ({"message": '{"level":"fatal","msg":"no","error":"why"}'}, "no: why"),
        ({"message": '{"level":"fatal"}'}, '{"level":"fatal"}'),
        ({"reason": "OOMKilled"}, "OOMKilled"),
        ({"exitCode": 137}, "exit code 137"),
        ({"message": "x" * 1000}, "x" * 300),
        ({"exitCode": 0, "reason": "Completed"}, ""),
    ],
)
def test_reason_is_the_last_log_line(more, reason):
    assert pod_view(pod(terminated(**more))).reason == reason


def test_pod_without_data_is_recognized():
    log_line = """{"msg":"discovery failed","error":"couldn't find local name \\"e-0\\" in the"}"""
    assert pod_view(pod(terminated(message=log_line))).is_missing_data
    assert not pod_view(pod(terminated(message=log_line), ready="True")).is_missing_data
    assert not pod_view(pod(terminated(message="no space left"))).is_missing_data


def test_terminating_pod():
    assert pod_view(pod(deletionTimestamp="2026-01-01T00:00:00Z")).is_terminating


def test_volume_exists_unless_its_claim_is_lost():
    assert not has_volume(None)
    assert not has_volume({"status": {"phase": "Lost"}})
    assert has_volume({"status": {"phase": "Pending"}})
    assert has_volume({})
