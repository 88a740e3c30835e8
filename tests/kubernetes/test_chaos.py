"""Tests a cluster under load with faults everywhere: acknowledged records are stored once."""

import random

import pytest

from kafscale.operator.kube.api import TOPICS
from services.kubernetes.deployed import DeployedCluster
from services.kubernetes.deployed_etcd import SIZE, DeployedEtcd
from services.kubernetes.faults import FaultInjector
from services.kubernetes.installation import Installation
from services.kubernetes.traffic import Traffic

SEED = 9
PARTITIONS = 6
BROKERS = 3
FAULTS_S = 60


@pytest.mark.timeout(420)
@pytest.mark.long  # tests/chaos has the same faults, without pods.
def test_acknowledged_records_survive_faults(
    kafscale: Installation, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shop = DeployedCluster.created(
        kafscale,
        namespace,
        brokers={"replicas": BROKERS, "terminationGracePeriodSeconds": 20},
        etcd={"managed": {"replicas": SIZE}, "snapshots": {"enabled": True, "intervalSeconds": 10}},
    )
    kafscale.create_topic(namespace, "orders", shop.name, partitions=PARTITIONS)
    kafscale.wait_phase(namespace, "orders", "Ready", kind=TOPICS)
    faults = FaultInjector(shop, random.Random(SEED))
    with Traffic(shop.servers, "orders", PARTITIONS) as traffic:
        faults.inject(FAULTS_S)
        etcd = DeployedEtcd(shop, tmp_path_factory.mktemp("certificates"))
        etcd.wait_healthy()
        assert shop.wait()["readyBrokers"] == BROKERS
    assert len(faults.log_of_faults) > FAULTS_S // 6, faults.log_of_faults
    traffic.verify_records()
