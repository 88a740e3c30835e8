"""Topics as resources: made, grown, altered, adopted and deleted, and nobody else fought over."""

import time
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from kafscale.operator.cluster.broker_status import FRESH_MS
from kafscale.operator.kube.kinds import EVENTS, TOPICS
from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.deployed import Deployed
from services.kubernetes.installation import Installation
from services.kubernetes.kube_client import Manifest

pytestmark = pytest.mark.timeout(240)

DAY_MS = 86_400_000
ANSWER_S = 20


class Shop(Deployed):
    """A cluster and its topics, as Kubernetes has them and as Kafka's clients see them."""

    def topic(self, name: str, phase: str = "Ready", **spec: Any) -> Manifest:
        """A topic's resource, made or changed; its status once that is about this."""
        if self.kube.get(TOPICS, self.namespace, name) is None:
            self.installation.create_topic(self.namespace, name, self.name, **spec)
        else:
            self.kube.patch(TOPICS, self.namespace, name, {"spec": spec})
        return self.installation.wait_phase(self.namespace, name, phase, kind=TOPICS)

    def delete_topic(self, name: str) -> None:
        self.kube.delete(TOPICS, self.namespace, name)
        self.kube.wait_until_gone(TOPICS, self.namespace, name)

    def topic_condition(self, name: str, type_: str) -> tuple[str, str]:
        found = self.installation.condition(self.namespace, name, type_, TOPICS)
        return found["status"], found["reason"]

    def topic_events(self, name: str) -> set[str]:
        events = self.kube.list(EVENTS, self.namespace)
        return {each["reason"] for each in events if each["involvedObject"]["name"] == name}

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers})

    def wait_seen(self, topic: str, partitions: int, **configs: str) -> None:
        """Wait until a client sees a topic like this; brokers hear of changes from etcd."""
        wanted = {name.replace("_", "."): value for name, value in configs.items()}
        self.wait_until(
            lambda: (
                self.partitions(topic) == partitions
                and (not partitions or wanted.items() <= self.configs(topic).items())
            ),
            f"{topic} with {partitions} partitions and {wanted}",
        )

    def partitions(self, topic: str) -> int:
        """How many a client sees; 0 if there is no such topic."""
        topics = self.admin.list_topics(timeout=ANSWER_S).topics
        return len(topics[topic].partitions) if topic in topics else 0

    def configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        found = self.admin.describe_configs([resource])[resource].result(ANSWER_S)
        return {name: entry.value for name, entry in found.items()}


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane, kafscale: Installation) -> Iterator[Shop]:
    with control_plane.namespace() as namespace:
        yield Shop.created(kafscale, namespace, brokers={"replicas": 1})


def test_a_topic_is_made_grown_and_altered(shop: Shop) -> None:
    shop.topic("orders", partitions=2, retentionMs=DAY_MS, config={"max.message.bytes": "5000"})
    shop.wait_seen("orders", 2, retention_ms=str(DAY_MS), max_message_bytes="5000")

    change = {"max.message.bytes": None, "cleanup.policy": "compact"}
    shop.topic("orders", partitions=4, retentionMs=2 * DAY_MS, config=change)
    shop.wait_seen("orders", 4, retention_ms=str(2 * DAY_MS), cleanup_policy="compact")
    assert shop.configs("orders")["max.message.bytes"] != "5000"
    assert shop.topic_condition("orders", "InSync") == ("True", "Matches")
    assert {"Created", "Grown", "Altered"} <= shop.topic_events("orders")


def test_what_is_changed_through_kafka_stays(shop: Shop) -> None:
    shop.topic("clicks", partitions=2, retentionMs=DAY_MS)
    shop.wait_seen("clicks", 2)
    shop.admin.create_partitions([NewPartitions("clicks", 5)])["clicks"].result(ANSWER_S)
    changes = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in (("retention.ms", "70000"), ("max.message.bytes", "9000"))
    ]
    resource = ConfigResource(ResourceType.TOPIC, "clicks", incremental_configs=changes)
    shop.admin.incremental_alter_configs([resource])[resource].result(ANSWER_S)
    # Each change of the resource that says nothing about the topic is a reconciliation more.
    for policy in ("Retain", "Delete", "Retain"):
        shop.topic("clicks", deletionPolicy=policy)
        assert shop.partitions("clicks") == 5
        configs = shop.configs("clicks")
        assert (configs["retention.ms"], configs["max.message.bytes"]) == ("70000", "9000")
    assert shop.topic_condition("clicks", "InSync") == ("False", "ChangedElsewhere")
    # What is said anew is done; and only that.
    shop.topic("clicks", retentionMs=2 * DAY_MS)
    shop.wait_seen("clicks", 5, retention_ms=str(2 * DAY_MS), max_message_bytes="9000")


def test_a_topic_goes_with_its_resource_or_stays_and_is_adopted(shop: Shop) -> None:
    shop.topic("carts", partitions=3, deletionPolicy="Retain")
    shop.topic("visits", partitions=3, deletionPolicy="Delete")
    shop.delete_topic("carts")
    shop.delete_topic("visits")
    assert shop.partitions("carts") == 3
    shop.wait_seen("visits", 0)

    adopted = shop.topic("carts", partitions=2, retentionMs=DAY_MS)
    assert "Adopted" in shop.topic_events("carts")
    assert len(adopted["partitions"]) == 3
    shop.wait_seen("carts", 3, retention_ms=str(DAY_MS))
    shop.topic("carts", partitions=4)
    shop.wait_seen("carts", 4)


def test_two_resources_cannot_have_the_same_topic(shop: Shop) -> None:
    shop.topic("older", topicName="fought.over", partitions=1)
    time.sleep(1.1)  # Ages are told in seconds.
    shop.topic("younger", "Failed", topicName="fought.over", partitions=3)
    assert shop.topic_condition("younger", "Ready") == ("False", "Conflict")
    shop.delete_topic("younger")
    assert shop.partitions("fought.over") == 1
    assert shop.topic_condition("older", "Ready") == ("True", "Applied")


def test_a_resource_that_is_wrong_says_so_and_changes_nothing(shop: Shop) -> None:
    shop.topic("wrong", "Failed", partitions=1, config={"cleanup.policy": "burn"})
    assert shop.topic_condition("wrong", "Ready") == ("False", "InvalidConfig")
    message = shop.installation.condition(shop.namespace, "wrong", "Ready", TOPICS)["message"]
    assert "cleanup.policy" in message
    assert shop.partitions("wrong") == 0
    shop.topic("wrong", config={"cleanup.policy": "delete"})
    shop.wait_seen("wrong", 1)


def test_a_topic_of_no_cluster_waits_and_may_go(shop: Shop) -> None:
    shop.topic("lost", "Pending", clusterRef="nowhere", partitions=1)
    assert shop.topic_condition("lost", "Ready") == ("False", "ClusterNotFound")
    shop.delete_topic("lost")


def test_the_status_tells_leaders_and_offsets(shop: Shop) -> None:
    shop.topic("events", partitions=2)
    shop.wait_seen("events", 2)
    producer = Producer({"bootstrap.servers": shop.servers})
    for number in range(30):
        producer.produce("events", str(number), partition=int(number >= 10))
    assert producer.flush(ANSWER_S) == 0
    time.sleep(FRESH_MS / 1000)  # So long what brokers have said is good enough.
    status = shop.topic("events", deletionPolicy="Retain")
    assert status["partitions"] == [
        {"id": 0, "leader": "0", "logEndOffset": 10},
        {"id": 1, "leader": "0", "logEndOffset": 20},
    ]
