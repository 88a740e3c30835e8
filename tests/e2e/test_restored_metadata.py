"""etcd is restored from a snapshot that is older than the bucket; no acknowledged record is lost.

Real brokers with a real etcd and a real S3 server; processes are killed without a clean stop.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kafscale.metadata.cluster.restore_marker import find_pending_restore, mark_restored
from services import s3_server
from services.cluster import Cluster, s3_link
from services.link_fault import Fault
from services.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not s3_server.is_available(), reason="no Go here to build an S3 server"),
]

LEASE_S = 4
RESTORE_STARTED = "metadata restore started"
RESTORE_COMPLETED = "metadata restore completed"

TopicAndIndex = tuple[str, int]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    settings = {"broker_lease_ttl_ms": str(LEASE_S * 1000), "segment_bytes": "16384"}
    with Cluster(tmp_path, brokers=3, etcd_members=1, seed=1, **settings) as running:
        running.wait_until_serving()
        yield running


class Workload:
    """The operations of clients, and the records that were acknowledged."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.acked: dict[TopicAndIndex, dict[int, bytes]] = {}
        self._directory = directory
        self._number = 0
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap})

    def create(self, topic: str, partitions: int) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
        self.acked |= {(topic, number): {} for number in range(partitions)}

    def grow(self, topic: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)
        for number in range(partitions):
            self.acked.setdefault((topic, number), {})

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(30)
        self.acked = {
            partition_key: records
            for partition_key, records in self.acked.items()
            if partition_key[0] != topic
        }

    def produce(self, *topics: str, count: int = 20, value_bytes: int = 200) -> None:
        """Produce to every partition; all records are acknowledged at consecutive offsets."""
        producer = Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 120_000,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )
        waiting: list[tuple[str, int, bytes]] = []
        failures: list[str] = []

        def on_delivery(error, message) -> None:
            partition_key = message.topic(), message.partition()
            if error is not None and error.code() == KafkaError._UNKNOWN_PARTITION:
                waiting.append((*partition_key, message.value()))  # It was never sent.
                return
            if error is not None:
                failures.append(str(error))
                return
            records = self.acked[partition_key]
            assert message.offset() not in records, "an offset was assigned twice"
            assert message.offset() == max(records, default=-1) + 1, "offsets are not consecutive"
            records[message.offset()] = message.value()

        for topic, partition in sorted(self.acked):
            if topic in topics:
                for _ in range(count):
                    self._number += 1
                    waiting.append((topic, partition, b"%d " % self._number + b"x" * value_bytes))
        deadline = time.monotonic() + 60
        while waiting and time.monotonic() < deadline:
            sent = waiting[:]
            waiting.clear()
            waiting += [record for record in sent if not try_produce(producer, record, on_delivery)]
            assert producer.flush(120) == 0
            time.sleep(0.1 if waiting else 0)
        assert (failures, waiting) == ([], [])

    def check(self) -> None:
        """Check that all acknowledged records are at their offsets, and no others."""
        result: dict[TopicAndIndex, dict[int, bytes]] = {
            partition_key: {} for partition_key in self.acked
        }
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": "check",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )
        consumer.assign(
            [
                TopicPartition(*partition_key, 0)
                for partition_key, records in self.acked.items()
                if records
            ]
        )
        count = sum(map(len, self.acked.values()))
        deadline = time.monotonic() + 90
        while sum(map(len, result.values())) < count and time.monotonic() < deadline:
            for message in consumer.consume(500, 1.0):
                if message.error() is None:
                    result[message.topic(), message.partition()][message.offset()] = message.value()
        consumer.close()
        assert result == self.acked

    def read_as_group(self, topic: str, seconds_max: float = 60) -> dict[int, set[int]]:
        """Consume all records as a group member, and commit; return the offsets by partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        ends = {
            partition_key[1]: max(records)
            for partition_key, records in self.acked.items()
            if partition_key[0] == topic
        }
        read: dict[int, set[int]] = {number: set() for number in ends}
        deadline = time.monotonic() + seconds_max
        while any(ends[number] not in read[number] for number in ends):
            assert time.monotonic() < deadline, f"read only {read} of {ends}"
            for message in consumer.consume(500, 1.0):
                if message.error() is None:
                    read[message.partition()].add(message.offset())
        consumer.commit(asynchronous=False)
        consumer.close()
        return read

    # --- etcd -----------------------------------------------------------------------------------

    def snapshot(self) -> Path:
        path = self._directory / "snapshot.db"
        self.cluster.etcd.control("snapshot", "save", str(path))
        return path

    def restore(self, snapshot: Path) -> None:
        """Kill etcd, and start it with the snapshot and the restore mark."""
        [member] = self.cluster.etcd.members
        member.kill()
        member.restore(snapshot)
        member.start()

        now_ms = int(time.time() * 1000)
        restore = {"snapshot": snapshot.name, "taken_at_ms": now_ms, "restored_at_ms": now_ms}
        self.cluster.etcd.run(lambda store: mark_restored(store, **restore))

    def is_restored(self) -> bool:
        return self.cluster.etcd.run(find_pending_restore) is None


def try_produce(producer: Producer, record: tuple[str, int, bytes], on_delivery) -> bool:
    """Whether the producer accepts the record; it rejects records of unknown partitions."""
    topic, partition, value = record
    try:
        producer.produce(topic, value, partition=partition, on_delivery=on_delivery)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
            raise
        return False
    return True


def wait_for(cluster: Cluster, *broker_ids: int) -> None:
    nodes = [cluster.nodes[number] for number in broker_ids]
    wait_until(
        lambda: all(node.is_serving for node in nodes),
        f"brokers {broker_ids}",
        seconds_max=90,
        seen=cluster.logged,
    )


def change_metadata(workload: Workload) -> None:
    """Make changes that the snapshot does not contain."""
    cluster = workload.cluster
    workload.produce("orders", "shrinking")
    workload.create("late", 3)
    workload.produce("late", count=100)
    workload.grow("orders", 8)
    workload.produce("orders", count=60)
    # A killed broker fails over and returns with a new broker session.
    cluster.nodes[1].kill()
    workload.produce("orders", "late")
    cluster.nodes[1].start()
    wait_for(cluster, 1)
    workload.produce("orders", "late")
    cluster.nodes[2].kill()
    cluster.nodes[2].start()
    wait_for(cluster, 2)
    workload.delete("shrinking")
    wait_until(lambda: "shrinking" not in catalog(cluster), "the catalog without the topic")
    workload.produce("orders", "late", count=5)


def catalog(cluster: Cluster) -> str:
    [path] = cluster.s3.objects("*/_catalog/topics.json")
    return path.read_text()


def kill_all(cluster: Cluster) -> None:
    for node in cluster.nodes.values():
        node.kill()


def topics(workload: Workload) -> set[str]:
    return set(workload.admin.list_topics(timeout=10).topics) - {"__consumer_offsets"}


def prepare(cluster: Cluster, directory: Path) -> tuple[Workload, Path, dict[int, set[int]]]:
    """Create topics, records, a group and a snapshot, and make changes after it."""
    workload = Workload(cluster, directory)
    workload.create("orders", 6)
    workload.create("shrinking", 2)
    workload.produce("orders", "shrinking", count=50)
    read = workload.read_as_group("orders")
    snapshot = workload.snapshot()
    change_metadata(workload)
    return workload, snapshot, read


@pytest.mark.long
def test_restored_cluster_has_all_records_and_topics(cluster, tmp_path):
    workload, snapshot, read_before = prepare(cluster, tmp_path)
    kill_all(cluster)
    workload.restore(snapshot)
    cluster.nodes[3].start()
    wait_for(cluster, 3)
    assert workload.is_restored()
    assert topics(workload) == {"orders", "late"}
    workload.check()
    workload.produce("orders", "late")
    cluster.nodes[1].start()
    cluster.nodes[2].start()
    wait_for(cluster, 1, 2)
    workload.produce("orders", "late")
    workload.check()
    # The group continues from the offsets of the snapshot.
    read = workload.read_as_group("orders")
    for number, offsets in read.items():
        expected = set(workload.acked["orders", number]) - read_before.get(number, set())
        assert offsets == expected
    logged = cluster.logged(10**9)
    assert logged.count(RESTORE_COMPLETED) == 1
    assert cluster.tracebacks() == []
    assert cluster.unexpected_exits == []


@pytest.mark.long
def test_restore_completes_after_the_controller_is_killed(cluster, tmp_path):
    workload, snapshot, _ = prepare(cluster, tmp_path)
    kill_all(cluster)
    workload.restore(snapshot)
    for number in cluster.nodes:
        # Slow requests for WAL objects, so that the restore takes many seconds.
        slow = Fault(delay_ms_min=1500, delay_ms_max=1500, only=r"^GET .*/_wal/.*\.kfw")
        cluster.network.set(s3_link(number), slow)
    for node in cluster.nodes.values():
        node.start()

    def restoring_brokers() -> list[int]:
        return [
            number
            for number, node in cluster.nodes.items()
            if RESTORE_STARTED in node.broker.logged()
        ]

    wait_until(restoring_brokers, "a broker that restores", seconds_max=90, seen=cluster.logged)
    [first] = restoring_brokers()
    assert not workload.is_restored()
    cluster.nodes[first].kill()
    cluster.network.heal()
    others = [number for number in cluster.nodes if number != first]
    wait_for(cluster, *others)
    workload.check()
    workload.produce("orders", "late")
    cluster.nodes[first].start()
    wait_for(cluster, first)
    workload.produce("orders", "late")
    workload.check()
    assert len(restoring_brokers()) == 2
    assert cluster.tracebacks() == []


@pytest.mark.long
def test_running_brokers_exit_after_a_restore_and_restart(cluster, tmp_path):
    workload, snapshot, _ = prepare(cluster, tmp_path)
    workload.restore(snapshot)
    wait_until(
        lambda: {ending.broker_id for ending in cluster.unexpected_exits} == {1, 2, 3},
        "all brokers to exit",
        seconds_max=60,
        seen=cluster.logged,
    )
    assert "restored from a snapshot while this broker ran" in cluster.logged(10**6)
    wait_until(workload.is_restored, "the restore to complete", seconds_max=90)
    cluster.wait_until_serving(90)
    workload.check()
    workload.produce("orders", "late")
    workload.check()


@pytest.mark.long
def test_running_clients_continue_after_a_restore(cluster, tmp_path):
    """Leader epochs do not decrease, so clients accept the new leaders."""
    workload = Workload(cluster, tmp_path)
    workload.create("orders", 6)
    snapshot = workload.snapshot()
    # Each transfer increases leader epochs.
    for number in (1, 2, 3):
        cluster.nodes[number].terminate()
        cluster.nodes[number].start()
        wait_for(cluster, number)
    settings = {"bootstrap.servers": cluster.bootstrap, "topic.metadata.refresh.interval.ms": 1000}
    producer = Producer(settings | {"enable.idempotence": True, "message.timeout.ms": 120_000})
    delivered: list[tuple[int, int]] = []
    failures = []

    def send() -> None:
        for partition in range(6):
            producer.produce(
                "orders",
                b"value",
                partition=partition,
                on_delivery=lambda error, message: (
                    failures.append(error)
                    if error
                    else delivered.append((message.partition(), message.offset()))
                ),
            )

    send()
    assert producer.flush(60) == 0
    kill_all(cluster)
    send()
    workload.restore(snapshot)
    for node in cluster.nodes.values():
        node.start()
    wait_for(cluster, 1, 2, 3)
    assert producer.flush(120) == 0
    send()
    assert producer.flush(60) == 0
    assert failures == []
    assert sorted(delivered) == [(number, offset) for number in range(6) for offset in range(3)]


@pytest.mark.long
def test_unmarked_restore_is_detected_by_brokers(cluster, tmp_path):
    workload, snapshot, _ = prepare(cluster, tmp_path)
    kill_all(cluster)
    [member] = cluster.etcd.members
    member.kill()
    member.restore(snapshot)
    member.start()
    cluster.nodes[1].start()
    wait_for(cluster, 1)
    assert "metadata is older than the bucket" in cluster.nodes[1].broker.logged()
    workload.check()
    workload.produce("orders", "late")
    workload.check()
    with pytest.raises(KafkaException):
        workload.delete("shrinking")
