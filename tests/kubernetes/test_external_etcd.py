"""Tests of an etcd that a resource or the settings name, and of what tenants may not name."""

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


def test_tenant_gets_neither_the_identity_nor_the_network_of_the_operator(
    kafscale: Installation, namespace: str
) -> None:
    kafscale.create_cluster(
        namespace, "kube", s3={"credentialsSecretRef": ""}, etcd={"useKubeEtcd": True}
    )
    loopback = {"endpoints": ["127.0.0.1:2379"]}
    kafscale.create_cluster(
        namespace, "loopback", s3={"endpoint": "http://169.254.169.254"}, etcd=loopback
    )
    for name, bucket_setting, etcd_setting in (
        ("kube", "operator.allowedBuckets", "operator.allowKubeEtcd"),
        ("loopback", "operator.allowedEndpoints", "operator.allowedEndpoints"),
    ):
        kafscale.wait_phase(namespace, name, "Pending")
        for type_, setting in (("BucketReady", bucket_setting), ("EtcdReady", etcd_setting)):
            reported = kafscale.condition(namespace, name, type_)
            assert reported["reason"] == "NotAllowed", reported
            assert setting in reported["message"]
        kafscale.kube.delete(CLUSTERS, namespace, name)
        kafscale.kube.wait_until_gone(CLUSTERS, namespace, name)


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
