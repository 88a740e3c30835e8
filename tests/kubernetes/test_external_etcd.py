"""Tests of an external etcd, named by the resource or by the operator's settings."""

import pytest

from kafscale.operator.kube.api import CLUSTERS, STATEFUL_SETS
from services.etcd_server import EtcdServer
from services.kubernetes.deployed import DeployedCluster
from services.kubernetes.installation import Installation
from services.kubernetes.namespaces import GATEWAY

SINGLE_BROKER = {"replicas": 1, "terminationGracePeriodSeconds": 20}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_endpoints_of_the_resource_come_before_settings(
    kafscale: Installation, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        EtcdServer(tmp_path_factory.mktemp("own"), host=GATEWAY) as own,
        EtcdServer(tmp_path_factory.mktemp("common"), host=GATEWAY) as common,
        kafscale.environment(KAFSCALE_OPERATOR_ETCD_ENDPOINTS=common.members[0].endpoint),
    ):
        named = {"endpoints": [own.members[0].endpoint]}
        kafscale.create_cluster(namespace, "named", brokers=SINGLE_BROKER, etcd=named)
        kafscale.create_cluster(namespace, "unnamed", brokers=SINGLE_BROKER)
        for name, server in (("named", own), ("unnamed", common)):
            reported = kafscale.wait_phase(namespace, name, "Ready")["etcd"]
            assert reported["endpoints"] == [server.members[0].endpoint]
            assert not reported["managed"]
            assert server.control("get", "--print-value-only", "/kafscale/cluster/id").strip()
            assert kafscale.kube.get(STATEFUL_SETS, namespace, f"{name}-etcd") is None
        kafscale.create_cluster(namespace, "late", brokers=SINGLE_BROKER)
        _check_etcd_is_refused(kafscale, namespace, "late", user=f"{namespace}/unnamed")
        for name in ("named", "unnamed", "late"):
            kafscale.kube.delete(CLUSTERS, namespace, name)
            kafscale.kube.wait_until_gone(CLUSTERS, namespace, name)


def test_managed_etcd_of_another_tenant_is_refused(
    kafscale: Installation, shop: DeployedCluster, namespace: str
) -> None:
    endpoints = shop.wait()["etcd"]["endpoints"]
    kafscale.create_cluster(
        namespace, "other", brokers=SINGLE_BROKER, etcd={"endpoints": endpoints}
    )
    _check_etcd_is_refused(kafscale, namespace, "other", user=f"{shop.namespace}/{shop.name}")
    kafscale.kube.delete(CLUSTERS, namespace, "other")
    kafscale.kube.wait_until_gone(CLUSTERS, namespace, "other")


def _check_etcd_is_refused(kafscale: Installation, namespace: str, name: str, user: str) -> None:
    """A cluster cannot use the etcd of another one."""
    kafscale.wait(
        lambda: kafscale.condition(namespace, name, "EtcdReady").get("status") == "False",
        "an etcd to be refused",
        namespace,
        name=name,
    )
    reported = kafscale.condition(namespace, name, "EtcdReady")
    assert reported["reason"] == "UsedByAnotherCluster", reported
    assert user in reported["message"]
    assert kafscale.kube.get(STATEFUL_SETS, namespace, f"{name}-broker") is None
