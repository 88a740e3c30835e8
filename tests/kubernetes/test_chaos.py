"""A cluster under load and in trouble everywhere: what was acknowledged is there, once."""

import random

import pytest

from kafscale.operator.kube.kinds import TOPICS
from services.kubernetes.deployed import Deployed
from services.kubernetes.deployed_etcd import SIZE, DeployedEtcd
from services.kubernetes.installation import Installation
from services.kubernetes.nemesis import Nemesis
from services.kubernetes.traffic import Traffic

SEED = 9
SECONDS = 60
PARTITIONS = 6
BROKERS = 3


@pytest.mark.timeout(420)
def test_a_cluster_in_trouble_keeps_what_it_has_acknowledged(
    kafscale: Installation, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shop = Deployed.created(
        kafscale,
        namespace,
        brokers={"replicas": BROKERS, "terminationGracePeriodSeconds": 20},
        etcd={"managed": {"replicas": SIZE}, "snapshots": {"enabled": True, "intervalSeconds": 10}},
    )
    kafscale.create_topic(namespace, "orders", shop.name, partitions=PARTITIONS)
    kafscale.wait_phase(namespace, "orders", "Ready", kind=TOPICS)
    nemesis = Nemesis(shop, random.Random(SEED))
    with Traffic(shop.servers, "orders", PARTITIONS) as traffic:
        nemesis.trouble(SECONDS)
        etcd = DeployedEtcd(shop, tmp_path_factory.mktemp("certificates"))
        etcd.wait_whole()
        assert shop.wait()["readyBrokers"] == BROKERS
    assert len(nemesis.story) > 10, nemesis.story
    traffic.verify_kept()
