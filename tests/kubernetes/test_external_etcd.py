"""Tests of an external etcd, named by the resource or by the operator's settings."""

import pytest

from kafscale.operator.kube.api import CLUSTERS, STATEFUL_SETS
from services.etcd_server import EtcdServer
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
        _check_used_etcd_is_rejected(kafscale, namespace)
        for name in ("named", "unnamed", "late"):
            kafscale.kube.delete(CLUSTERS, namespace, name)
            kafscale.kube.wait_until_gone(CLUSTERS, namespace, name)


def _check_used_etcd_is_rejected(kafscale: Installation, namespace: str) -> None:
    """A cluster cannot use the etcd of another one."""
    kafscale.create_cluster(namespace, "late", brokers=SINGLE_BROKER)
    kafscale.wait(
        lambda: kafscale.condition(namespace, "late", "EtcdReady").get("status") == "False",
        "an etcd to be refused",
        namespace,
        name="late",
    )
    reported = kafscale.condition(namespace, "late", "EtcdReady")
    assert reported["reason"] == "UsedByAnotherCluster", reported
    assert f"{namespace}/unnamed" in reported["message"]
    assert kafscale.kube.get(STATEFUL_SETS, namespace, "late-broker") is None
