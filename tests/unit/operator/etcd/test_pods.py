"""Pods and volume claims, read."""

import pytest

from kafscale.operator.etcd.pods import has_volume, pod_view
from kafscale.operator.manifests import names


def pod(*containers, ready="False", **metadata):
    return {
        "metadata": {"name": "e-0", "uid": "u", **metadata},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": list(containers),
        },
    }


def ended(**more):
    return {"lastState": {"terminated": {"exitCode": 1, **more}}}


def test_a_pod_in_good_health():
    found = pod_view(pod(ready="True", annotations={names.CONFIG_CHECKSUM: "c"}))
    assert (found.uid, found.checksum, found.is_ready) == ("u", "c", True)
    assert not found.is_crashing
    assert not found.is_terminating
    assert found.reason == ""


def test_a_pod_that_has_just_been_made():
    found = pod_view({"metadata": {"name": "e-0", "uid": "u"}})
    assert not found.is_ready
    assert not found.is_crashing


@pytest.mark.parametrize(
    "container", [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}, {"restartCount": 3}]
)
def test_a_pod_that_does_not_stay(container):
    assert pod_view(pod(container)).is_crashing
    assert not pod_view(pod(container, ready="True")).is_crashing


def test_a_pod_that_was_restarted_once_is_not_crashing():
    assert not pod_view(pod({"restartCount": 2, "state": {"running": {}}})).is_crashing


def test_a_container_that_fills_the_volume_counts_as_well():
    one = pod()
    one["status"]["initContainerStatuses"] = [{"restartCount": 9, **ended(message="no bucket")}]
    assert pod_view(one).is_crashing
    assert pod_view(one).reason == "no bucket"


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
def test_the_reason_is_the_last_that_it_said(more, reason):
    assert pod_view(pod(ended(**more))).reason == reason


def test_a_pod_without_data_is_turned_away():
    said = """{"msg":"discovery failed","error":"couldn't find local name \\"e-0\\" in the"}"""
    assert pod_view(pod(ended(message=said))).is_turned_away
    assert not pod_view(pod(ended(message=said), ready="True")).is_turned_away
    assert not pod_view(pod(ended(message="no space left"))).is_turned_away


def test_a_pod_on_its_way_out():
    assert pod_view(pod(deletionTimestamp="2026-01-01T00:00:00Z")).is_terminating


def test_a_volume_is_there_unless_it_is_said_to_be_lost():
    assert not has_volume(None)
    assert not has_volume({"status": {"phase": "Lost"}})
    assert has_volume({"status": {"phase": "Pending"}})
    assert has_volume({})
