"""Tests of reading pods, including incomplete ones."""

import copy

import pytest

from kafscale.operator.manifests import pods
from unit.operator.manifests.clusters import CASES, case, pod_template
from unit.operator.manifests.pod_security import violations


def pod(status=None, **metadata):
    return {"metadata": {"name": "production-broker-7", **metadata}, "status": status}


def ready(status):
    return {"conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", **status}]}


def test_ordinal_and_revision():
    assert pods.ordinal(pod()) == 7
    assert pods.revision(pod(labels={"controller-revision-hash": "p-5d9"})) == "p-5d9"
    assert pods.revision(pod()) == ""


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, False),
        ({}, False),
        ({"conditions": [{"type": "Initialized", "status": "True"}]}, False),
        (ready({"status": "False"}), False),
        (ready({"status": "Unknown"}), False),
        (ready({"status": "True"}), True),
    ],
)
def test_readiness(status, expected):
    assert pods.is_ready(pod(status)) is expected


def test_termination():
    assert not pods.is_terminating(pod())
    assert pods.is_terminating(pod(deletionTimestamp="2026-01-01T00:00:00Z"))


def test_ready_since():
    since = "2026-01-01T00:00:07Z"
    ready_since = ready({"status": "True", "lastTransitionTime": since})
    assert pods.ready_ms(pod(ready_since)) == 1_767_225_607_000
    for status in (None, {}, ready({"status": "False", "lastTransitionTime": since})):
        assert pods.ready_ms(pod(status)) == 0


@pytest.mark.parametrize("name", CASES)
def test_broker_pods_pass_the_restricted_standard(name):
    assert violations(pod_template(*case(name))) == []


@pytest.mark.parametrize("name", CASES)
def test_broker_pods_have_a_read_only_root_and_no_token(name):
    pod = pod_template(*case(name))["spec"]
    [container] = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert not pod["automountServiceAccountToken"]
    assert not pod["enableServiceLinks"]
    assert pod["securityContext"]["runAsUser"] == 65532
    writable = [each for each in container["volumeMounts"] if not each.get("readOnly")]
    assert [each["name"] for each in writable] == ["tmp"]


def _container(pod):
    return pod["containers"][0]


def _without(key):
    """Remove a key wherever it occurs."""

    def remove_key(pod):
        for part in (pod, _container(pod)):
            part["securityContext"].pop(key, None)

    return remove_key


def _with(**more):
    return lambda pod: _container(pod)["securityContext"].update(more)


BREAKS = {
    "hostNetwork is set": lambda pod: pod.update(hostNetwork=True),
    "volume host is of a forbidden type": lambda pod: pod["volumes"].append(
        {"name": "host", "hostPath": {"path": "/"}}
    ),
    "container broker: is privileged": _with(privileged=True),
    "container broker: may gain privileges": _without("allowPrivilegeEscalation"),
    "container broker: may run as root": _without("runAsNonRoot"),
    "container broker: runs as root": _with(runAsUser=0),
    "container broker: has no seccomp profile": _without("seccompProfile"),
    "container broker: keeps capabilities": _without("capabilities"),
    "container broker: adds capabilities": _with(
        capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    ),
    "container broker: takes a port of its host": lambda pod: _container(pod)["ports"].append(
        {"containerPort": 1, "hostPort": 1}
    ),
}


@pytest.mark.parametrize("violation", BREAKS)
def test_violations_are_detected(violation):
    template = copy.deepcopy(pod_template(*case("production")))
    BREAKS[violation](template["spec"])
    assert violations(template) == [violation]
