"""Tests of two operators: if the leader dies or is paused, the other continues, never both."""

import pytest

from kafscale.operator.kube.api import PODS, TOPICS
from services.kubernetes.deployed import DeployedCluster
from services.kubernetes.installation import HOME, Installation

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(autouse=True)
def _complete(kafscale: Installation) -> None:
    kafscale.wait_operator()


@pytest.mark.long
def test_next_leader_continues_a_rollout(kafscale: Installation, shop: DeployedCluster) -> None:
    shop.wait()
    before, drained_before = shop.pod_uids(), len(shop.events("Drained"))
    shop.change(brokers={"podAnnotations": {"example.org/changed": "yes"}})
    shop.wait_until(lambda: len(shop.events("Drained")) > drained_before, "the rollout to begin")
    kafscale.kubelet.kill(HOME, kafscale.leader())
    second = _next_leader(shop, kafscale.holder())
    kafscale.kube.delete(PODS, HOME, second.rpartition("_")[0], grace_s=0)
    _next_leader(shop, second)
    shop.wait(seconds_max=120)
    after = shop.pod_uids()
    assert after.keys() == before.keys()
    assert not after.items() & before.items()


def test_paused_leader_exits_and_does_nothing(
    kafscale: Installation, shop: DeployedCluster
) -> None:
    shop.wait()
    kubelet = kafscale.kubelet
    paused, identity = kafscale.leader(), kafscale.holder()
    kubelet.pause(HOME, paused)
    log_size_before = len(kubelet.logs(HOME, paused))
    restarts = _restarts(kafscale, paused)
    try:
        kafscale.create_topic(shop.namespace, "meanwhile", shop.name)
        kafscale.wait_phase(shop.namespace, "meanwhile", "Ready", kind=TOPICS)
        assert kafscale.holder() not in {"", identity}
    finally:
        kubelet.resume(HOME, paused)
    shop.wait_until(lambda: _restarts(kafscale, paused) > restarts, "the paused one to exit")
    new_lines = kubelet.logs(HOME, paused)[log_size_before:].partition("operator listening")[0]
    assert "leader lease lost" in new_lines
    for work in ("topic changed", "broker drained", "condition changed"):
        assert work not in new_lines
    assert kafscale.leader() != paused


def test_permissions_of_the_operator_suffice(kafscale: Installation, shop: DeployedCluster) -> None:
    shop.wait()
    # In all tests so far. A namespace that is being deleted accepts no new objects.
    forbidden_lines = [
        line
        for line in kafscale.kubelet.logs(HOME, "*", "operator").splitlines()
        if "forbidden" in line and "being terminated" not in line
    ]
    assert not forbidden_lines, forbidden_lines[:3]


def _next_leader(shop: DeployedCluster, before: str) -> str:
    """The identity of the leader, as soon as it is another one."""
    kafscale = shop.installation
    shop.wait_until(lambda: kafscale.holder() not in {"", before}, "another leader")
    return kafscale.holder()


def _restarts(kafscale: Installation, pod: str) -> int:
    manifest = kafscale.kube.get(PODS, HOME, pod)
    assert manifest is not None
    return sum(each["restartCount"] for each in manifest["status"]["containerStatuses"])
