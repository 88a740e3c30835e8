"""Tests that a cluster is restored from its buckets alone, with all acknowledged records."""

from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafscale.metadata.cluster.restore_marker import REVISION_BUMP
from kafscale.operator.kube.api import CLUSTERS, PODS, TOPICS, VOLUME_CLAIMS
from services.kubernetes.deployed import DeployedCluster
from services.kubernetes.deployed_etcd import SIZE, DeployedEtcd
from services.kubernetes.installation import Installation
from services.kubernetes.traffic import read_all

GROUP = "accounting"
PARTITIONS = 3
DELIVERY_S = 60

RecordPosition = tuple[str, int, int]
"""Topic, partition and offset."""


@pytest.mark.timeout(400)
def test_lost_cluster_is_restored_from_its_buckets(
    kafscale: Installation, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    snapshots = {
        "enabled": True,
        "bucket": f"backups-of-{namespace}",
        "createBucket": True,
        "intervalSeconds": 10,
    }
    desired = {"managed": {"replicas": SIZE}, "snapshots": snapshots}
    shop = DeployedCluster.created(kafscale, namespace, etcd=desired)
    kafscale.create_topic(namespace, "orders", shop.name, partitions=PARTITIONS)
    kafscale.wait_phase(namespace, "orders", "Ready", kind=TOPICS)
    sent = _produce(shop, "orders", 200)
    committed = _consume(shop, "orders", len(sent))
    _wait_snapshot(shop)
    # Changes from here on are in no snapshot.
    shop.change(etcd={"snapshots": {"intervalSeconds": 3600}})
    shop.wait()
    late = _change(shop)
    sent |= _produce(shop, "orders", 200) | _produce(shop, "late", 100) | _produce(shop, "wild", 50)

    _delete_cluster(shop)

    snapshots["intervalSeconds"] = 3600
    kafscale.create_cluster(namespace, shop.name, etcd=desired | {"restoreFrom": "latest"})
    shop.wait(seconds_max=150)
    assert _log(shop) == sent
    assert kafscale.wait_phase(namespace, "late", "Ready", kind=TOPICS)["topicId"] == late
    again = _committed(shop, "orders")
    assert all(again[each] >= committed[each] for each in committed), (committed, again)
    etcd = DeployedEtcd(shop, tmp_path_factory.mktemp("certificates"))
    # Once it has formed, members are restarted without the restore container.
    shop.wait_until(lambda: not _restoring(etcd), "members without a restore container")
    etcd.wait_healthy()
    assert etcd.status(0).revision > REVISION_BUMP
    # The cluster continues where it was.
    more = _produce(shop, "orders", 60)
    assert not more.keys() & sent.keys()
    assert _log(shop) == sent | more


def _restoring(etcd: DeployedEtcd) -> list[str]:
    """The members with a restore container."""
    return [pod["metadata"]["name"] for pod in etcd.pods() if "initContainers" in pod["spec"]]


def _change(shop: DeployedCluster) -> str:
    """Create topics and partitions; return the id of the topic that has a resource."""
    kafscale = shop.installation
    kafscale.create_topic(shop.namespace, "late", shop.name, partitions=2)
    kafscale.create_topic(shop.namespace, "orders", shop.name, partitions=PARTITIONS + 1)
    admin = AdminClient({"bootstrap.servers": shop.servers})
    for created in admin.create_topics([NewTopic("wild", 2)]).values():
        created.result(DELIVERY_S)
    shop.wait_until(lambda: len(_partitions(shop, "orders")) > PARTITIONS, "another partition")
    reported = kafscale.wait_phase(shop.namespace, "late", "Ready", kind=TOPICS)
    return str(reported["topicId"])


def _wait_snapshot(shop: DeployedCluster) -> None:
    """Return when there is a snapshot of the current state."""
    now = datetime.now(UTC).isoformat()
    shop.wait_until(
        lambda: (shop.wait().get("snapshot") or {}).get("lastTime", "") > now, "a snapshot"
    )


def _delete_cluster(shop: DeployedCluster) -> None:
    """Delete brokers, etcd with its volumes, and the resource."""
    kube, space = shop.kube, shop.namespace
    pods = [pod["metadata"]["name"] for pod in kube.list(PODS, space)]
    for pod in pods:
        shop.installation.kubelet.kill(space, pod)
    kube.delete(CLUSTERS, space, shop.name)
    for claim in kube.list(VOLUME_CLAIMS, space):
        kube.delete(VOLUME_CLAIMS, space, claim["metadata"]["name"])
    for pod in pods:
        kube.delete(PODS, space, pod, grace_s=0)
    # Its objects are deleted gradually, while a new cluster is created.
    kube.wait_until_gone(CLUSTERS, space, shop.name)


def _produce(shop: DeployedCluster, topic: str, count: int) -> dict[RecordPosition, str]:
    """The acknowledged values by position; all are acknowledged."""
    acknowledged: dict[RecordPosition, str] = {}
    failures = []

    def on_delivery(error: object, message: Message) -> None:
        if error is None:
            position = (topic, message.partition(), message.offset())
            acknowledged[position] = message.value().decode()
        else:
            failures.append(error)

    producer = Producer({"bootstrap.servers": shop.servers, "enable.idempotence": True})
    partitions = len(_partitions(shop, topic))
    for number in range(count):
        producer.produce(
            topic, f"{topic}-{number}", partition=number % partitions, on_delivery=on_delivery
        )
    assert producer.flush(DELIVERY_S) == 0
    assert not failures, failures[:3]
    assert len(acknowledged) == count
    return acknowledged


def _log(shop: DeployedCluster) -> dict[RecordPosition, str]:
    """All records of all topics."""
    settings = {"bootstrap.servers": shop.servers}
    return {
        (topic, message.partition(), message.offset()): message.value().decode()
        for topic in ("orders", "late", "wild")
        for message in read_all(settings, topic, len(_partitions(shop, topic)))
    }


def _consume(shop: DeployedCluster, topic: str, count: int) -> dict[int, int]:
    """Let a group read `count` records and commit; return the committed offsets."""
    settings = {
        "bootstrap.servers": shop.servers,
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    received = 0
    try:

        def is_read() -> bool:
            nonlocal received
            received += sum(not message.error() for message in consumer.consume(100, 0.5))
            return received >= count

        shop.wait_until(is_read, "a group that has read everything")
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    committed = _committed(shop, topic)
    assert sum(committed.values()) == count
    return committed


def _committed(shop: DeployedCluster, topic: str) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": shop.servers, "group.id": GROUP})
    try:
        result = consumer.committed(_partitions(shop, topic), DELIVERY_S)
    finally:
        consumer.close()
    return {each.partition: each.offset for each in result}


def _partitions(shop: DeployedCluster, topic: str) -> list[TopicPartition]:
    admin = AdminClient({"bootstrap.servers": shop.servers})
    result = admin.list_topics(topic, timeout=DELIVERY_S).topics[topic].partitions
    return [TopicPartition(topic, number) for number in result]
