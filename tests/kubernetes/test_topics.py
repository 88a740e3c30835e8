"""Tests of topic resources: create, grow, alter, adopt and delete, respecting other changes."""

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
from kafscale.operator.kube.api import EVENTS, TOPICS
from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.deployed import DeployedCluster
from services.kubernetes.installation import Installation
from services.kubernetes.kube_client import Manifest

pytestmark = pytest.mark.timeout(240)

DAY_MS = 86_400_000
ANSWER_S = 20


class ClusterWithTopics(DeployedCluster):
    """A cluster and its topics, in Kubernetes and as Kafka clients see them."""

    def topic(self, name: str, phase: str = "Ready", **spec: Any) -> Manifest:
        """Apply a topic's resource; return its status once it is about this spec."""
        if self.kube.get(TOPICS, self.namespace, name) is None:
            self.installation.create_topic(self.namespace, name, self.name, **spec)
        else:
            self.kube.patch(TOPICS, self.namespace, name, {"spec": spec})
        return self.installation.wait_phase(self.namespace, name, phase, kind=TOPICS)

    def delete_topic(self, name: str) -> None:
        self.kube.delete(TOPICS, self.namespace, name)
        self.kube.wait_until_gone(TOPICS, self.namespace, name)

    def topic_condition(self, name: str, type_: str) -> tuple[str, str]:
        condition = self.installation.condition(self.namespace, name, type_, TOPICS)
        return condition["status"], condition["reason"]

    def topic_events(self, name: str) -> set[str]:
        events = self.kube.list(EVENTS, self.namespace)
        return {each["reason"] for each in events if each["involvedObject"]["name"] == name}

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers})

    def wait_visible(self, topic: str, partitions: int, **configs: str) -> None:
        """Wait until a client sees such a topic; brokers learn of changes from etcd."""
        desired = {name.replace("_", "."): value for name, value in configs.items()}
        self.wait_until(
            lambda: (
                self.partitions(topic) == partitions
                and (not partitions or desired.items() <= self.configs(topic).items())
            ),
            f"{topic} with {partitions} partitions and {desired}",
        )

    def partitions(self, topic: str) -> int:
        """The number of partitions that a client sees; 0 without the topic."""
        topics = self.admin.list_topics(timeout=ANSWER_S).topics
        return len(topics[topic].partitions) if topic in topics else 0

    def configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        condition = self.admin.describe_configs([resource])[resource].result(ANSWER_S)
        return {name: entry.value for name, entry in condition.items()}


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane, kafscale: Installation) -> Iterator[ClusterWithTopics]:
    with control_plane.namespace() as namespace:
        yield ClusterWithTopics.created(kafscale, namespace, brokers={"replicas": 1})


def test_topic_is_created_grown_and_altered(shop: ClusterWithTopics) -> None:
    shop.topic("orders", partitions=2, retentionMs=DAY_MS, config={"max.message.bytes": "5000"})
    shop.wait_visible("orders", 2, retention_ms=str(DAY_MS), max_message_bytes="5000")

    change = {"max.message.bytes": None, "cleanup.policy": "compact"}
    shop.topic("orders", partitions=4, retentionMs=2 * DAY_MS, config=change)
    shop.wait_visible("orders", 4, retention_ms=str(2 * DAY_MS), cleanup_policy="compact")
    assert shop.configs("orders")["max.message.bytes"] != "5000"
    assert shop.topic_condition("orders", "InSync") == ("True", "Matches")
    assert {"Created", "Grown", "Altered"} <= shop.topic_events("orders")


def test_changes_through_kafka_are_kept(shop: ClusterWithTopics) -> None:
    shop.topic("clicks", partitions=2, retentionMs=DAY_MS)
    shop.wait_visible("clicks", 2)
    shop.admin.create_partitions([NewPartitions("clicks", 5)])["clicks"].result(ANSWER_S)
    changes = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in (("retention.ms", "70000"), ("max.message.bytes", "9000"))
    ]
    resource = ConfigResource(ResourceType.TOPIC, "clicks", incremental_configs=changes)
    shop.admin.incremental_alter_configs([resource])[resource].result(ANSWER_S)
    # Each change of an annotation causes a reconcile.
    for policy in ("Retain", "Delete", "Retain"):
        shop.topic("clicks", deletionPolicy=policy)
        assert shop.partitions("clicks") == 5
        configs = shop.configs("clicks")
        assert (configs["retention.ms"], configs["max.message.bytes"]) == ("70000", "9000")
    assert shop.topic_condition("clicks", "InSync") == ("False", "ChangedElsewhere")
    # Only what changed in the resource is applied.
    shop.topic("clicks", retentionMs=2 * DAY_MS)
    shop.wait_visible("clicks", 5, retention_ms=str(2 * DAY_MS), max_message_bytes="9000")


def test_topic_is_deleted_or_retained_and_adopted(shop: ClusterWithTopics) -> None:
    shop.topic("carts", partitions=3, deletionPolicy="Retain")
    shop.topic("visits", partitions=3, deletionPolicy="Delete")
    shop.delete_topic("carts")
    shop.delete_topic("visits")
    assert shop.partitions("carts") == 3
    shop.wait_visible("visits", 0)

    adopted = shop.topic("carts", partitions=2, retentionMs=DAY_MS)
    assert "Adopted" in shop.topic_events("carts")
    assert len(adopted["partitions"]) == 3
    shop.wait_visible("carts", 3, retention_ms=str(DAY_MS))
    shop.topic("carts", partitions=4)
    shop.wait_visible("carts", 4)


def test_two_resources_conflict(shop: ClusterWithTopics) -> None:
    shop.topic("older", topicName="fought.over", partitions=1)
    time.sleep(1.1)  # Timestamps have a resolution of one second.
    shop.topic("younger", "Failed", topicName="fought.over", partitions=3)
    assert shop.topic_condition("younger", "Ready") == ("False", "Conflict")
    shop.delete_topic("younger")
    assert shop.partitions("fought.over") == 1
    assert shop.topic_condition("older", "Ready") == ("True", "Applied")


def test_invalid_resource_is_reported_and_changes_nothing(shop: ClusterWithTopics) -> None:
    shop.topic("wrong", "Failed", partitions=1, config={"cleanup.policy": "burn"})
    assert shop.topic_condition("wrong", "Ready") == ("False", "InvalidConfig")
    message = shop.installation.condition(shop.namespace, "wrong", "Ready", TOPICS)["message"]
    assert "cleanup.policy" in message
    assert shop.partitions("wrong") == 0
    shop.topic("wrong", config={"cleanup.policy": "delete"})
    shop.wait_visible("wrong", 1)


def test_topic_without_a_cluster_waits_and_can_be_deleted(shop: ClusterWithTopics) -> None:
    shop.topic("lost", "Pending", clusterRef="nowhere", partitions=1)
    assert shop.topic_condition("lost", "Ready") == ("False", "ClusterNotFound")
    shop.delete_topic("lost")


def test_status_has_leaders_and_offsets(shop: ClusterWithTopics) -> None:
    shop.topic("events", partitions=2)
    shop.wait_visible("events", 2)
    producer = Producer({"bootstrap.servers": shop.servers})
    for number in range(30):
        producer.produce("events", str(number), partition=int(number >= 10))
    assert producer.flush(ANSWER_S) == 0
    time.sleep(FRESH_MS / 1000)  # Until the cached broker status expires.
    status = shop.topic("events", deletionPolicy="Retain")
    assert status["partitions"] == [
        {"id": 0, "leader": "0", "logEndOffset": 10},
        {"id": 1, "leader": "0", "logEndOffset": 20},
    ]
