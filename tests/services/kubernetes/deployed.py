"""One cluster on Kubernetes: change its spec, wait for its status, read events and logs.

shop = DeployedCluster.created(kafscale, namespace, "shop", brokers={"replicas": 3})
shop.change(config={"flushIntervalMs": 50}) shop.wait()
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Self

from confluent_kafka.admin import AdminClient

from kafscale.operator.kube.api import CLUSTERS, EVENTS, PODS, STATEFUL_SETS, TOPICS
from services.kubernetes.installation import Installation
from services.kubernetes.kube_client import Manifest, has_condition

METADATA_S_MAX = 10


class DeployedCluster:
    """A cluster that exists, or is about to."""

    def __init__(self, installation: Installation, namespace: str, name: str) -> None:
        self.installation = installation
        self.kube = installation.kube
        self.namespace = namespace
        self.name = name

    @classmethod
    def created(
        cls, installation: Installation, namespace: str, name: str = "shop", **spec: Any
    ) -> Self:
        """Create a cluster, and wait until clients can use it."""
        installation.create_cluster(namespace, name, **spec)
        deployed = cls(installation, namespace, name)
        deployed.wait()
        return deployed

    # --- changes ----------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic, and wait until all partitions have leaders."""
        self.installation.create_topic(self.namespace, name, self.name, partitions=partitions)
        self.installation.wait_phase(self.namespace, name, "Ready", kind=TOPICS)
        self.wait_until(
            lambda: (
                self.leader_counts(name).total() == partitions
                and -1 not in self.leader_counts(name)
            ),
            f"leaders of {name}",
        )

    def change(self, **spec: Any) -> None:
        """Merge into its spec."""
        assert self.kube.patch(CLUSTERS, self.namespace, self.name, {"spec": spec})

    def wait(self, phase: str = "Ready", *, seconds_max: float = 90) -> Manifest:
        """The status, once it is about the newest spec and has this phase."""
        return self.installation.wait_phase(
            self.namespace, self.name, phase, seconds_max=seconds_max
        )

    def wait_until(
        self, condition: Callable[[], object], what: str, *, seconds_max: float = 60
    ) -> None:
        self.installation.wait(
            lambda: bool(condition()), what, self.namespace, name=self.name, seconds_max=seconds_max
        )

    # --- state ------------------------------------------------------------------------------------

    @property
    def servers(self) -> str:
        return self.installation.bootstrap(self.namespace, self.name)

    def stateful_set(self) -> Manifest:
        objects = self.kube.get(STATEFUL_SETS, self.namespace, f"{self.name}-broker")
        assert objects is not None
        return objects

    def pods(self) -> list[Manifest]:
        """The brokers' pods, by ordinal."""
        labels = {"app": "kafscale-broker", "cluster": self.name}
        objects = self.kube.list(PODS, self.namespace, labels)
        return sorted(objects, key=lambda pod: int(pod["metadata"]["name"].rpartition("-")[2]))

    def pod_uids(self) -> dict[str, str]:
        """The uids of pods by name: a recreated pod has another one."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods()}

    def log(self, ordinal: int) -> str:
        """The log of a broker, including earlier containers of the pod."""
        return self.installation.kubelet.logs(self.namespace, f"{self.name}-broker-{ordinal}")

    def condition(self, type_: str) -> Manifest:
        return self.installation.condition(self.namespace, self.name, type_)

    def events(self, reason: str) -> list[str]:
        """The messages of events with this reason, oldest first."""
        objects = [
            event
            for event in self.kube.list(EVENTS, self.namespace)
            if event["reason"] == reason and event["involvedObject"]["name"] == self.name
        ]
        return [event["message"] for event in sorted(objects, key=_version)]

    def leader_counts(self, topic: str) -> Counter[int]:
        """The number of partitions of a topic that each broker leads, as clients see it."""
        client = AdminClient({"bootstrap.servers": self.servers})
        partitions = client.list_topics(topic, timeout=METADATA_S_MAX).topics[topic].partitions
        return Counter(partition.leader for partition in partitions.values())


def is_ready(pod: Manifest) -> bool:
    """Whether a pod is ready and not terminating."""
    return "deletionTimestamp" not in pod["metadata"] and has_condition(pod, "Ready")


def _version(event: Manifest) -> int:
    """Grows with every event, while timestamps have a resolution of one second."""
    return int(event["metadata"]["resourceVersion"])
