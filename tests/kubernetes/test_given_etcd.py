"""An etcd that somebody else runs: the resource names it, or the operator was set up with it."""

import pytest

from kafscale.operator.kube.kinds import CLUSTERS, STATEFUL_SETS
from services.etcd_server import EtcdServer
from services.kubernetes.installation import Installation
from services.kubernetes.namespaces import GATEWAY

ONE = {"replicas": 1, "terminationGracePeriodSeconds": 20}


@pytest.mark.timeout(300)
def test_the_first_that_is_named_is_used(
    kafscale: Installation, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        EtcdServer(tmp_path_factory.mktemp("own"), host=GATEWAY) as own,
        EtcdServer(tmp_path_factory.mktemp("common"), host=GATEWAY) as common,
        kafscale.environment(KAFSCALE_OPERATOR_ETCD_ENDPOINTS=common.members[0].endpoint),
    ):
        named = {"endpoints": [own.members[0].endpoint]}
        kafscale.create_cluster(namespace, "named", brokers=ONE, etcd=named)
        kafscale.create_cluster(namespace, "unnamed", brokers=ONE)
        for name, server in (("named", own), ("unnamed", common)):
            told = kafscale.wait_phase(namespace, name, "Ready")["etcd"]
            assert told["endpoints"] == [server.members[0].endpoint]
            assert not told["managed"]
            assert server.control("get", "--print-value-only", "/kafscale/cluster/id").strip()
            assert kafscale.kube.get(STATEFUL_SETS, namespace, f"{name}-etcd") is None
        _check_late_comer(kafscale, namespace)
        for name in ("named", "unnamed", "late"):
            kafscale.kube.delete(CLUSTERS, namespace, name)
            kafscale.kube.wait_until_gone(CLUSTERS, namespace, name)


def _check_late_comer(kafscale: Installation, namespace: str) -> None:
    """Nobody gets an etcd that somebody else has."""
    kafscale.create_cluster(namespace, "late", brokers=ONE)
    kafscale.wait(
        lambda: kafscale.condition(namespace, "late", "EtcdReady").get("status") == "False",
        "an etcd to be refused",
        namespace,
        name="late",
    )
    told = kafscale.condition(namespace, "late", "EtcdReady")
    assert told["reason"] == "UsedByAnotherCluster", told
    assert f"{namespace}/unnamed" in told["message"]
    assert kafscale.kube.get(STATEFUL_SETS, namespace, "late-broker") is None
