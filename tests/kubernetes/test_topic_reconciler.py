"""Topics on a real API server and a real etcd: made, told about, kept apart, and deleted."""

import asyncio
import time
import uuid
from contextlib import asynccontextmanager

import pytest
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config import load_kube_config

from kafscale.errors import KubeError
from kafscale.operator import crd
from kafscale.operator.cluster.metadata import MetadataRegistry
from kafscale.operator.cluster.survey import Surveyor, over_control_plane
from kafscale.operator.kube.client import ApiServer
from kafscale.operator.kube.kinds import CLUSTERS, EVENTS, TOPICS, Kind
from kafscale.operator.topics.reconciler import TopicReconciler
from services.etcd_server import EtcdServer
from services.kubernetes.control_plane import ControlPlane

DEFINITIONS = Kind(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions",
    is_namespaced=False,
)  # fmt: skip


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A control plane that knows our resources."""
    for definition in crd.definitions():
        name = control_plane.kube.apply(definition)["metadata"]["name"]
        control_plane.kube.wait_for(DEFINITIONS, "", name, is_established)
    return control_plane


def is_established(definition):
    said = definition.get("status", {}).get("conditions") or []
    return any((each["type"], each["status"]) == ("Established", "True") for each in said)


def clock():
    return time.time_ns() // 1_000_000


class Stage:
    """A reconciler, and a cluster whose etcd is in use."""

    def __init__(self, kube, registry, namespace):
        self.kube = kube
        self.registry = registry
        self.namespace = namespace
        self.reconciler = TopicReconciler(
            kube, registry, Surveyor(over_control_plane(), clock),
            clock=clock, new_id=lambda: uuid.uuid4().bytes,
        )  # fmt: skip

    @property
    def metadata(self):
        return self.registry.get(self.namespace, "production")

    async def apply(self, kind, name, **spec):
        return await self.kube.apply(
            {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": spec,
            }
        )

    async def topic(self, name="orders"):
        return await self.kube.get(TOPICS, self.namespace, name)

    async def reconcile(self, name="orders"):
        await self.reconciler.reconcile(await self.topic(name))
        return (await self.topic(name))["status"]


@asynccontextmanager
async def staged(plane, etcd, namespace):
    configuration = Configuration()
    await load_kube_config(config_file=str(plane.kubeconfig), client_configuration=configuration)
    registry = MetadataRegistry()
    async with ApiClient(configuration) as client:
        stage = Stage(ApiServer(client), registry, namespace)
        await stage.apply(CLUSTERS, "production", brokers={}, s3={"bucket": "records"})
        try:
            await registry.open(namespace, "production", etcd.settings(), "objects")
            yield stage
        finally:
            await registry.close_all()


@pytest.fixture
def play(plane: ControlPlane, namespace: str, tmp_path):
    """Runs the body of a test, an async function of a stage."""
    with EtcdServer(tmp_path) as etcd:

        def run(body):
            async def scenario():
                async with staged(plane, etcd, namespace) as stage:
                    return await body(stage)

            return asyncio.run(scenario())

        yield run


def reasons(status):
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def test_a_topic_is_made_changed_told_about_and_deleted(play, plane, namespace):
    async def body(stage):
        await stage.apply(
            TOPICS, "orders", clusterRef="production", partitions=2, config={"segment.ms": "9"}
        )
        made = await stage.reconcile()
        await stage.apply(TOPICS, "orders", clusterRef="production", partitions=4, retentionMs=5)
        changed = await stage.reconcile()
        version = (await stage.topic())["metadata"]["resourceVersion"]
        await stage.reconcile()
        assert (await stage.topic())["metadata"]["resourceVersion"] == version
        topic = stage.metadata.topics["orders"]
        assert await stage.reconciler.let_go(await stage.topic())
        return made, changed, topic, set(stage.metadata.catalog.deletions)

    made, changed, topic, deletions = play(body)
    assert made["phase"] == "Ready"
    assert made["applied"]["config"]["segment.ms"] == "9"
    assert made["partitions"] == [{"id": 0}, {"id": 1}]
    assert reasons(changed) == {"Ready": ("True", "Applied"), "InSync": ("True", "AsWanted")}
    assert changed["applied"] == {
        "partitions": 4, "config": {"retention.ms": "5", "retention.bytes": "-1"},
    }  # fmt: skip
    assert changed["observedGeneration"] == 2
    assert changed["topicId"] == made["topicId"] == topic.id.hex()
    assert (topic.partitions, topic.configs) == (4, changed["applied"]["config"])
    assert deletions == {"orders"}
    told = {each["reason"] for each in plane.kube.list(EVENTS, namespace)}
    assert {"Created", "Grown", "Altered", "Deleted"} <= told


def test_the_older_of_two_has_the_topic(play):
    async def body(stage):
        first = await stage.apply(
            TOPICS, "first", clusterRef="production", partitions=1, topicName="orders"
        )
        await asyncio.sleep(1.1)  # The API server counts whole seconds.
        await stage.apply(
            TOPICS, "second", clusterRef="production", partitions=9, topicName="orders"
        )
        refused = await stage.reconcile("second")
        await stage.reconcile("first")
        partitions = stage.metadata.topics["orders"].partitions
        # A resource that is gone is nobody's any more, and telling of it is no error.
        await stage.kube.delete(TOPICS, stage.namespace, "first")
        await stage.reconciler.reconcile(first)
        with pytest.raises(KubeError, match="uid"):
            await stage.kube.apply({**first, "metadata": about(first)})
        return refused, partitions

    refused, partitions = play(body)
    assert reasons(refused) == {"Ready": ("False", "Conflict")}
    assert "topicId" not in refused
    assert partitions == 1


def about(body):
    return {name: body["metadata"][name] for name in ("name", "namespace", "uid")}
