"""One cluster on Kubernetes: what is asked of it, how it is doing, and what was told about it.

shop = Deployed.created(kafscale, namespace, "shop", brokers={"replicas": 3})
shop.change(config={"flushIntervalMs": 50})
shop.wait()
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Self

from confluent_kafka.admin import AdminClient

from kafscale.operator.kube.kinds import CLUSTERS, EVENTS, PODS, STATEFUL_SETS, TOPICS
from services.kubernetes.installation import Installation
from services.kubernetes.kube_client import Manifest, has_condition

METADATA_S_MAX = 10


class Deployed:
    """A cluster that is there already, or is about to be."""

    def __init__(self, installation: Installation, namespace: str, name: str) -> None:
        self.installation = installation
        self.kube = installation.kube
        self.namespace = namespace
        self.name = name

    @classmethod
    def created(
        cls, installation: Installation, namespace: str, name: str = "shop", **spec: Any
    ) -> Self:
        """A new one, as soon as clients can use it."""
        installation.create_cluster(namespace, name, **spec)
        deployed = cls(installation, namespace, name)
        deployed.wait()
        return deployed

    # --- what is asked ----------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int) -> None:
        """Have a topic, and each of its partitions served."""
        self.installation.create_topic(self.namespace, name, self.name, partitions=partitions)
        self.installation.wait_phase(self.namespace, name, "Ready", kind=TOPICS)
        self.wait_until(
            lambda: self.shares(name).total() == partitions and -1 not in self.shares(name),
            f"leaders of {name}",
        )

    def change(self, **spec: Any) -> None:
        """Merge into its spec."""
        assert self.kube.patch(CLUSTERS, self.namespace, self.name, {"spec": spec})

    def wait(self, phase: str = "Ready", *, seconds_max: float = 90) -> Manifest:
        """Its status, once that is about the newest spec and says so."""
        return self.installation.wait_phase(
            self.namespace, self.name, phase, seconds_max=seconds_max
        )

    def wait_until(
        self, condition: Callable[[], object], what: str, *, seconds_max: float = 60
    ) -> None:
        self.installation.wait(
            lambda: bool(condition()), what, self.namespace, name=self.name, seconds_max=seconds_max
        )

    # --- how it is doing --------------------------------------------------------------------------

    @property
    def servers(self) -> str:
        return self.installation.bootstrap(self.namespace, self.name)

    def stateful_set(self) -> Manifest:
        found = self.kube.get(STATEFUL_SETS, self.namespace, f"{self.name}-broker")
        assert found is not None
        return found

    def pods(self) -> list[Manifest]:
        """The brokers' pods, the first one first."""
        labels = {"app": "kafscale-broker", "cluster": self.name}
        found = self.kube.list(PODS, self.namespace, labels)
        return sorted(found, key=lambda pod: int(pod["metadata"]["name"].rpartition("-")[2]))

    def identities(self) -> dict[str, str]:
        """Which pods there are, by name: a pod that was started anew is another one."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods()}

    def log(self, ordinal: int) -> str:
        """What a broker has said, in all its lives."""
        return self.installation.kubelet.logs(self.namespace, f"{self.name}-broker-{ordinal}")

    def condition(self, type_: str) -> Manifest:
        return self.installation.condition(self.namespace, self.name, type_)

    def events(self, reason: str) -> list[str]:
        """What was told about the cluster under this word, the oldest first."""
        found = [
            event
            for event in self.kube.list(EVENTS, self.namespace)
            if event["reason"] == reason and event["involvedObject"]["name"] == self.name
        ]
        return [event["message"] for event in sorted(found, key=_version)]

    def shares(self, topic: str) -> Counter[int]:
        """How many partitions of a topic each broker leads, as a client is told."""
        client = AdminClient({"bootstrap.servers": self.servers})
        partitions = client.list_topics(topic, timeout=METADATA_S_MAX).topics[topic].partitions
        return Counter(partition.leader for partition in partitions.values())


def is_ready(pod: Manifest) -> bool:
    """Whether a pod serves, and is not about to go."""
    return "deletionTimestamp" not in pod["metadata"] and has_condition(pod, "Ready")


def _version(event: Manifest) -> int:
    """Which grows from one event to the next, where moments are as long as a second."""
    return int(event["metadata"]["resourceVersion"])
