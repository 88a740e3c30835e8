"""Two operators: whichever dies or falls silent, the work goes on, and never twice at once."""

from collections.abc import Iterator

import pytest

from kafscale.operator.kube.kinds import PODS, TOPICS
from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.deployed import Deployed
from services.kubernetes.installation import HOME, Installation

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane, kafscale: Installation) -> Iterator[Deployed]:
    with control_plane.namespace() as namespace:
        yield Deployed.created(kafscale, namespace)


@pytest.fixture(autouse=True)
def _complete(kafscale: Installation) -> None:
    kafscale.wait_operator()


def test_the_work_goes_on_when_leaders_die(kafscale: Installation, shop: Deployed) -> None:
    shop.wait()
    before, told = shop.identities(), len(shop.events("Drained"))
    shop.change(brokers={"podAnnotations": {"example.org/changed": "yes"}})
    shop.wait_until(lambda: len(shop.events("Drained")) > told, "the rollout to begin")
    kafscale.kubelet.kill(HOME, kafscale.leader())
    second = _next_leader(shop, kafscale.holder())
    kafscale.kube.delete(PODS, HOME, second.rpartition("_")[0], grace_s=0)
    _next_leader(shop, second)
    shop.wait(seconds_max=120)
    after = shop.identities()
    assert after.keys() == before.keys()
    assert not after.items() & before.items()


def test_who_was_paused_leaves_the_work_to_the_next(kafscale: Installation, shop: Deployed) -> None:
    shop.wait()
    kubelet = kafscale.kubelet
    paused, identity = kafscale.leader(), kafscale.holder()
    kubelet.pause(HOME, paused)
    said = len(kubelet.logs(HOME, paused))
    restarts = _restarts(kafscale, paused)
    try:
        kafscale.create_topic(shop.namespace, "meanwhile", shop.name)
        kafscale.wait_phase(shop.namespace, "meanwhile", "Ready", kind=TOPICS)
        assert kafscale.holder() not in {"", identity}
    finally:
        kubelet.resume(HOME, paused)
    shop.wait_until(lambda: _restarts(kafscale, paused) > restarts, "the paused one to exit")
    told = kubelet.logs(HOME, paused)[said:].partition("operator listening")[0]
    assert "leader lease lost" in told
    for work in ("topic changed", "broker drained", "condition changed"):
        assert work not in told
    assert kafscale.leader() != paused


def test_the_rights_of_the_operator_suffice(kafscale: Installation, shop: Deployed) -> None:
    shop.wait()
    # Of whatever operators have done for all tests so far. What goes takes nothing new.
    refused = [
        line
        for line in kafscale.kubelet.logs(HOME, "*", "operator").splitlines()
        if "forbidden" in line and "being terminated" not in line
    ]
    assert not refused, refused[:3]


def _next_leader(shop: Deployed, before: str) -> str:
    """Who leads now, as soon as that is not the same as before."""
    kafscale = shop.installation
    shop.wait_until(lambda: kafscale.holder() not in {"", before}, "another leader")
    return kafscale.holder()


def _restarts(kafscale: Installation, pod: str) -> int:
    found = kafscale.kube.get(PODS, HOME, pod)
    assert found is not None
    return sum(each["restartCount"] for each in found["status"]["containerStatuses"])
