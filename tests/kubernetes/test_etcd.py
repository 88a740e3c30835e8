"""Tests of the managed etcd: it starts with TLS, and survives the loss of a member."""

from collections.abc import Iterator

import pytest

from kafscale.errors import KafscaleError
from kafscale.operator.kube.api import TOPICS
from services import etcd_programs
from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.deployed import DeployedCluster
from services.kubernetes.deployed_etcd import SIZE, DeployedEtcd
from services.kubernetes.installation import Installation
from services.kubernetes.readiness import Readiness
from services.kubernetes.traffic import Traffic

pytestmark = pytest.mark.timeout(240)

PARTITIONS = 4


@pytest.fixture(scope="module")
def etcd(
    control_plane: ControlPlane, kafscale: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DeployedEtcd]:
    with control_plane.namespace() as namespace:
        desired = {
            "managed": {"replicas": SIZE},
            "snapshots": {"enabled": True, "intervalSeconds": 10, "retain": 3},
        }
        shop = DeployedCluster.created(kafscale, namespace, etcd=desired)
        for topic in ("lost", "rolled"):
            kafscale.create_topic(namespace, topic, shop.name, partitions=PARTITIONS)
            kafscale.wait_phase(namespace, topic, "Ready", kind=TOPICS)
        yield DeployedEtcd(shop, tmp_path_factory.mktemp("certificates"))


def test_members_require_a_certificate(etcd: DeployedEtcd) -> None:
    reported = etcd.deployed.wait()["etcd"]
    assert reported["managed"]
    assert (reported["members"], reported["membersReady"]) == (SIZE, SIZE)
    assert [each.partition("://")[0] for each in reported["endpoints"]] == ["https"] * SIZE
    assert {each.name for each in etcd.members()} == {etcd.name(index) for index in range(SIZE)}
    assert etcd.status(0).version == etcd_programs.version()
    with pytest.raises(KafscaleError):
        etcd.status(0, with_certificate=False)


@pytest.mark.long
def test_deleted_member_is_recreated(etcd: DeployedEtcd) -> None:
    etcd.wait_healthy()
    members, before = etcd.members(), etcd.pod_uids()
    newest = _newest_snapshot(etcd)
    etcd.delete(1)
    etcd.deployed.wait_until(
        lambda: etcd.pod_uids().get(etcd.name(1), before[etcd.name(1)]) != before[etcd.name(1)],
        "another pod",
    )
    etcd.wait_healthy()
    assert etcd.members() == members
    etcd.deployed.wait_until(lambda: _newest_snapshot(etcd) > newest, "a snapshot")
    assert etcd.deployed.condition("EtcdSnapshot")["status"] == "True"


@pytest.mark.long
def test_snapshots_continue_while_a_member_is_paused(etcd: DeployedEtcd) -> None:
    etcd.wait_healthy()
    kubelet, paused = etcd.deployed.installation.kubelet, (etcd.deployed.namespace, etcd.name(2))
    kubelet.pause(*paused)
    try:
        etcd.deployed.wait_until(
            lambda: etcd.deployed.condition("EtcdMembersHealthy")["status"] == "False",
            "the missing member in the status",
        )
        newest = _newest_snapshot(etcd)
        etcd.deployed.wait_until(lambda: _newest_snapshot(etcd) > newest, "a snapshot")
    finally:
        kubelet.resume(*paused)
    etcd.wait_healthy()


def test_member_without_data_is_replaced_under_load(etcd: DeployedEtcd) -> None:
    etcd.wait_healthy()
    before = {each.name: each.id for each in etcd.members()}
    with Traffic(etcd.deployed.servers, "lost", PARTITIONS) as traffic:
        etcd.lose_data(1)
        etcd.deployed.wait_until(
            lambda: etcd.deployed.condition("EtcdMembersHealthy")["status"] == "False",
            "the loss in the status",
        )
        etcd.wait_healthy(seconds_max=180)
    traffic.verify()
    after = {each.name: each.id for each in etcd.members()}
    assert after.keys() == before.keys()
    assert dict(after.items() - before.items()).keys() == {etcd.name(1)}


@pytest.mark.long
def test_changed_spec_restarts_one_member_at_a_time(etcd: DeployedEtcd) -> None:
    etcd.wait_healthy()
    members, before = etcd.members(), etcd.pod_uids()
    with (
        Traffic(etcd.deployed.servers, "rolled", PARTITIONS) as traffic,
        Readiness(etcd) as readiness,
    ):
        etcd.deployed.change(etcd={"managed": {"quota": "3Gi"}})
        etcd.deployed.wait_until(
            lambda: not etcd.pod_uids().items() & before.items(), "all members to be replaced"
        )
        etcd.wait_healthy()
    traffic.verify()
    assert readiness.minimum == SIZE - 1
    assert etcd.members() == members
    for pod in etcd.pods():
        [container] = pod["spec"]["containers"]
        assert f"--quota-backend-bytes={3 << 30}" in container["command"]


def _newest_snapshot(etcd: DeployedEtcd) -> str:
    """The key of the newest snapshot; later keys are greater."""
    return etcd.deployed.wait().get("snapshot", {}).get("lastKey", "")
