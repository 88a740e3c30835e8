"""etcd is lost and restored from a snapshot, which is older than the bucket: nothing else is lost.

Real brokers on a real etcd and a real S3 server; everything is killed as by a loss of power.
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
SETTLING = "metadata restore started"
SETTLED = "metadata restore completed"

Place = tuple[str, int]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    settings = {"broker_lease_ttl_ms": str(LEASE_S * 1000), "segment_bytes": "16384"}
    with Cluster(tmp_path, brokers=3, etcd_members=1, seed=1, **settings) as running:
        running.wait_until_serving()
        yield running


class Story:
    """What clients did, and what they were told."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.acked: dict[Place, dict[int, bytes]] = {}
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
        self.acked = {place: held for place, held in self.acked.items() if place[0] != topic}

    def produce(self, *topics: str, count: int = 20, value_bytes: int = 200) -> None:
        """Records for every partition, all acknowledged, at offsets that nobody had before."""
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

        def told(error, message) -> None:
            place = message.topic(), message.partition()
            if error is not None and error.code() == KafkaError._UNKNOWN_PARTITION:
                waiting.append((*place, message.value()))  # It was never sent.
                return
            if error is not None:
                failures.append(str(error))
                return
            held = self.acked[place]
            assert message.offset() not in held, "an offset was given out twice"
            assert message.offset() == max(held, default=-1) + 1, "offsets were left out"
            held[message.offset()] = message.value()

        for topic, partition in sorted(self.acked):
            if topic in topics:
                for _ in range(count):
                    self._number += 1
                    waiting.append((topic, partition, b"%d " % self._number + b"x" * value_bytes))
        deadline = time.monotonic() + 60
        while waiting and time.monotonic() < deadline:
            sent = waiting[:]
            waiting.clear()
            waiting += [record for record in sent if not handed_over(producer, record, told)]
            assert producer.flush(120) == 0
            time.sleep(0.1 if waiting else 0)
        assert (failures, waiting) == ([], [])

    def check(self) -> None:
        """Everything acknowledged is where it was, and nothing else is there."""
        found: dict[Place, dict[int, bytes]] = {place: {} for place in self.acked}
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": "check",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )
        consumer.assign([TopicPartition(*place, 0) for place, held in self.acked.items() if held])
        count = sum(map(len, self.acked.values()))
        deadline = time.monotonic() + 90
        while sum(map(len, found.values())) < count and time.monotonic() < deadline:
            for message in consumer.consume(500, 1.0):
                if message.error() is None:
                    found[message.topic(), message.partition()][message.offset()] = message.value()
        consumer.close()
        assert found == self.acked

    def read_as_group(self, topic: str, seconds_max: float = 60) -> dict[int, set[int]]:
        """Read on to the end as a member of a group, and commit; the offsets that were read."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        ends = {place[1]: max(held) for place, held in self.acked.items() if place[0] == topic}
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
        """Kill etcd, and start it with the snapshot and the mark."""
        [member] = self.cluster.etcd.members
        member.kill()
        member.restore(snapshot)
        member.start()

        now_ms = int(time.time() * 1000)
        told = {"snapshot": snapshot.name, "taken_at_ms": now_ms, "restored_at_ms": now_ms}
        self.cluster.etcd.play(lambda store: mark_restored(store, **told))

    def is_settled(self) -> bool:
        return self.cluster.etcd.play(find_pending_restore) is None


def handed_over(producer: Producer, record: tuple[str, int, bytes], told) -> bool:
    """Whether the producer takes a record: it refuses one for a partition of which it knows not."""
    topic, partition, value = record
    try:
        producer.produce(topic, value, partition=partition, on_delivery=told)
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


def live_on(story: Story) -> None:
    """Much happens that the snapshot does not know."""
    cluster = story.cluster
    story.produce("orders", "shrinking")
    story.create("late", 3)
    story.produce("late", count=100)
    story.grow("orders", 8)
    story.produce("orders", count=60)
    # A broker dies, and others take over what it had; it comes back as another life.
    cluster.nodes[1].kill()
    story.produce("orders", "late")
    cluster.nodes[1].start()
    wait_for(cluster, 1)
    story.produce("orders", "late")
    cluster.nodes[2].kill()
    cluster.nodes[2].start()
    wait_for(cluster, 2)
    story.delete("shrinking")
    wait_until(lambda: "shrinking" not in catalog(cluster), "the catalog without the topic")
    story.produce("orders", "late", count=5)


def catalog(cluster: Cluster) -> str:
    [path] = cluster.s3.objects("*/_catalog/topics.json")
    return path.read_text()


def kill_all(cluster: Cluster) -> None:
    for node in cluster.nodes.values():
        node.kill()


def topics(story: Story) -> set[str]:
    return set(story.admin.list_topics(timeout=10).topics)


def begin(cluster: Cluster, directory: Path) -> tuple[Story, Path, dict[int, set[int]]]:
    """A cluster with records, a group and a snapshot, and all that happened since."""
    story = Story(cluster, directory)
    story.create("orders", 6)
    story.create("shrinking", 2)
    story.produce("orders", "shrinking", count=50)
    read = story.read_as_group("orders")
    snapshot = story.snapshot()
    live_on(story)
    return story, snapshot, read


@pytest.mark.long
def test_everything_is_there_whoever_comes_first(cluster, tmp_path):
    story, snapshot, read_before = begin(cluster, tmp_path)
    kill_all(cluster)
    story.restore(snapshot)
    cluster.nodes[3].start()
    wait_for(cluster, 3)
    assert story.is_settled()
    assert topics(story) == {"orders", "late"}
    story.check()
    story.produce("orders", "late")
    cluster.nodes[1].start()
    cluster.nodes[2].start()
    wait_for(cluster, 1, 2)
    story.produce("orders", "late")
    story.check()
    # The group goes on where it was when the snapshot was taken.
    read = story.read_as_group("orders")
    for number, offsets in read.items():
        expected = set(story.acked["orders", number]) - read_before.get(number, set())
        assert offsets == expected
    logged = cluster.logged(10**9)
    assert logged.count(SETTLED) == 1
    assert cluster.tracebacks() == []
    assert cluster.endings == []


@pytest.mark.long
def test_the_controller_dies_in_the_middle(cluster, tmp_path):
    story, snapshot, _ = begin(cluster, tmp_path)
    kill_all(cluster)
    story.restore(snapshot)
    for number in cluster.nodes:
        # Each request for a WAL object is so slow that settling takes many seconds.
        slow = Fault(delay_ms_min=1500, delay_ms_max=1500, only=r"^GET .*/_wal/.*\.kfw")
        cluster.network.set(s3_link(number), slow)
    for node in cluster.nodes.values():
        node.start()

    def who_settles() -> list[int]:
        return [
            number for number, node in cluster.nodes.items() if SETTLING in node.broker.logged()
        ]

    wait_until(who_settles, "somebody who settles", seconds_max=90, seen=cluster.logged)
    [first] = who_settles()
    assert not story.is_settled()
    cluster.nodes[first].kill()
    cluster.network.heal()
    others = [number for number in cluster.nodes if number != first]
    wait_for(cluster, *others)
    story.check()
    story.produce("orders", "late")
    cluster.nodes[first].start()
    wait_for(cluster, first)
    story.produce("orders", "late")
    story.check()
    assert len(who_settles()) == 2
    assert cluster.tracebacks() == []


@pytest.mark.long
def test_brokers_that_live_through_it_stop_and_are_started_again(cluster, tmp_path):
    story, snapshot, _ = begin(cluster, tmp_path)
    story.restore(snapshot)
    wait_until(
        lambda: {ending.broker_id for ending in cluster.endings} == {1, 2, 3},
        "the end of all brokers",
        seconds_max=60,
        seen=cluster.logged,
    )
    assert "restored from a snapshot while this broker ran" in cluster.logged(10**6)
    wait_until(story.is_settled, "the metadata to be settled", seconds_max=90)
    cluster.wait_until_serving(90)
    story.check()
    story.produce("orders", "late")
    story.check()


def test_clients_that_live_through_it_carry_on(cluster, tmp_path):
    """Leader epochs have not gone back, so clients believe what they are told of new leaders."""
    story = Story(cluster, tmp_path)
    story.create("orders", 6)
    snapshot = story.snapshot()
    # Leader epochs grow by handing over, more than once.
    for number in (1, 2, 3):
        cluster.nodes[number].terminate()
        cluster.nodes[number].start()
        wait_for(cluster, number)
    settings = {"bootstrap.servers": cluster.bootstrap, "topic.metadata.refresh.interval.ms": 1000}
    producer = Producer(settings | {"enable.idempotence": True, "message.timeout.ms": 120_000})
    told: list[tuple[int, int]] = []
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
                    else told.append((message.partition(), message.offset()))
                ),
            )

    send()
    assert producer.flush(60) == 0
    kill_all(cluster)
    send()
    story.restore(snapshot)
    for node in cluster.nodes.values():
        node.start()
    wait_for(cluster, 1, 2, 3)
    assert producer.flush(120) == 0
    send()
    assert producer.flush(60) == 0
    assert failures == []
    assert sorted(told) == [(number, offset) for number in range(6) for offset in range(3)]


@pytest.mark.long
def test_a_snapshot_restored_without_a_word_is_noticed_by_brokers_that_have_lived_since(
    cluster, tmp_path
):
    story, snapshot, _ = begin(cluster, tmp_path)
    kill_all(cluster)
    [member] = cluster.etcd.members
    member.kill()
    member.restore(snapshot)
    member.start()
    cluster.nodes[1].start()
    wait_for(cluster, 1)
    assert "metadata are older than the bucket" in cluster.nodes[1].broker.logged()
    story.check()
    story.produce("orders", "late")
    story.check()
    with pytest.raises(KafkaException):
        story.delete("shrinking")
