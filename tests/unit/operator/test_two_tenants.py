"""Tests of two tenants: a user who may edit `attacker` reaches nothing of `victim`.

The operator is whole and real, on an API server in memory; servers of S3 and etcd do not exist, and
a connection to one would fail the test. The settings list what `victim` may use.
"""

import asyncio
import random

import pytest

from kafscale.config.sections.operator import Operator
from kafscale.observability.metrics.operator import OperatorMetrics
from kafscale.operator.cluster.backups import BackupReconciler
from kafscale.operator.cluster.bucket import BucketReconciler
from kafscale.operator.cluster.listener_certificates import ListenerCertificates
from kafscale.operator.cluster.metadata import MetadataRegistry
from kafscale.operator.cluster.reconciler import ClusterReconciler
from kafscale.operator.cluster.rollout import RolloutExecutor
from kafscale.operator.cluster.scale_to_zero.controller import (
    ScaleToZeroController,
    flush_over_control_plane,
)
from kafscale.operator.control_certificates import ControlCertificates
from kafscale.operator.etcd.reconciler import EtcdReconciler
from kafscale.operator.kube.api import CLUSTERS, SECRETS, TOPICS
from kafscale.operator.manifests import names
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import read_cluster
from kafscale.operator.tenants import TenantRules
from kafscale.operator.topics.reconciler import TopicReconciler
from kafscale.operator.work_queue import WorkQueue
from services.authorized_kube import AuthorizedKube
from services.memory_kube import START_MS, MemoryKube

PLATFORM = Platform()
SETTINGS = Operator(
    allowed_buckets=("victim/victims-bucket", "*/shared"),
    allowed_roles=("victim/arn:aws:iam::1:role/victim",),
    allowed_endpoints=("victim/minio.victim",),
)
KEYS = {"bucket": "attackers-bucket", "credentialsSecretRef": "own-keys"}
VICTIMS_ETCD = "https://production-etcd.victim.svc:2379"
METADATA_SERVICE = "169.254.169.254"
ADDRESSES = {"metadata.example.com": METADATA_SERVICE}


class RecordingKube(MemoryKube):
    """Records which Secrets are read."""

    def __init__(self):
        super().__init__()
        self.secrets_read = set()

    async def get(self, kind, namespace, name):
        if kind == SECRETS:
            self.secrets_read.add((namespace, name))
        return await super().get(kind, namespace, name)


class World:
    """The operator, and both tenants."""

    def __init__(self, directory):
        self.kube = RecordingKube()
        self.operator_kube = operator = AuthorizedKube(self.kube)
        metrics = OperatorMetrics(lambda: START_MS)
        self.rules = TenantRules(SETTINGS, self._resolve)
        self.buckets = BucketReconciler(operator, lambda: START_MS, self.rules)
        self.registry = MetadataRegistry()
        self.backups = BackupReconciler(
            self.buckets,
            metrics,
            clock=lambda: START_MS,
            timer=lambda: 0.0,
            random=random.Random(1),
        )
        etcds = EtcdReconciler(
            operator,
            PLATFORM,
            clock=lambda: START_MS,
            directory=directory,
            newest_snapshot=self.backups.newest_key,
            rules=self.rules,
            connect=_refuse_connection,
        )
        self.clusters = ClusterReconciler(
            operator,
            PLATFORM,
            control_certificates=ControlCertificates(
                operator, PLATFORM, clock=lambda: START_MS, directory=directory / "control"
            ),
            listener_certificates=ListenerCertificates(operator, PLATFORM, lambda: START_MS),
            etcds=etcds,
            buckets=self.buckets,
            backups=self.backups,
            registry=self.registry,
            rollout=RolloutExecutor(operator, PLATFORM, metrics, None),
            scale_to_zero=ScaleToZeroController(
                operator,
                self,
                WorkQueue(),
                lambda: START_MS,
                host="127.0.0.1",
                address="",
                flush=flush_over_control_plane(PLATFORM, None),
            ),
            metrics=metrics,
            resync_seconds=30,
        )
        self.topics = TopicReconciler(
            operator, self.registry, self, clock=lambda: START_MS, new_id=lambda: bytes(16)
        )

    async def collect(self, _metadata):
        raise AssertionError("there are no brokers")

    async def _resolve(self, host):
        is_address = host[0].isdigit()
        return [host if is_address else ADDRESSES.get(host, "10.0.0.9")]

    async def create(self, kind, namespace, name, **fields):
        metadata = {"name": name, "namespace": namespace}
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        return await self.kube.create(body | fields)

    async def populate(self):
        """What the victim has, and the attacker's own keys."""
        for namespace, secret in (
            ("victim", "s3-keys"),
            ("victim", "production-etcd-client-tls"),
            ("attacker", "own-keys"),
            ("attacker", "own-tls"),
        ):
            data = {"KAFSCALE_S3_ACCESS_KEY": "YQ==", "KAFSCALE_S3_SECRET_KEY": "Yg=="}
            await self.create(SECRETS, namespace, secret, data=data)
        spec = {"brokers": {}, "s3": {"bucket": "victims-bucket"}}
        return await self.create(CLUSTERS, "victim", "production", spec=spec)

    async def attack(self, **spec):
        """The conditions of a cluster in `attacker` after a reconcile."""
        desired = {"brokers": {}, "s3": KEYS, **spec}
        body = await self.create(CLUSTERS, "attacker", "evil", spec=desired)
        await self.clusters.reconcile(body)
        reported = await self.kube.get(CLUSTERS, "attacker", "evil")
        assert "victim" not in {namespace for namespace, _ in self.kube.secrets_read}
        return {each["type"]: each for each in reported.get("status", {}).get("conditions", [])}


def _refuse_connection(endpoint, _settings):
    raise AssertionError(f"the operator connects to {endpoint}")


def run(tmp_path, scenario):
    async def complete():
        world = World(tmp_path)
        await world.populate()
        return await scenario(world)

    return asyncio.run(complete())


ATTACKS = {
    "bucket of the victim": {"bucket": "victims-bucket"},
    "role of the victim": {"bucket": "shared", "roleArn": "arn:aws:iam::1:role/victim"},
    "prefix of the victim": {"bucket": "shared", "namespace": "victim.production"},
    "own server with the operator's signature": {
        "bucket": "shared",
        "endpoint": "http://10.0.0.66:9000",
    },
    "server of the victim": {"bucket": "shared", "endpoint": "http://minio.victim"},
    "replication to the attacker": {
        "bucket": "shared",
        "replication": True,
        "replicationBucket": "arn:aws:s3:::attackers-bucket",
        "replicationRoleArn": "arn:aws:iam::1:role/victim",
    },
    "identity of the operator's pod": {
        "bucket": "victims-bucket",
        "credentialSource": "workload-identity",
    },
    "metadata service by address": {**KEYS, "endpoint": f"http://{METADATA_SERVICE}"},
    "metadata service by name": {**KEYS, "endpoint": "http://metadata.example.com"},
    "operator's own ports": {**KEYS, "endpoint": "http://127.0.0.1:9093"},
    "two hosts in one": {**KEYS, "endpoint": rf"http://{METADATA_SERVICE}\@10.0.0.66"},
}


@pytest.mark.parametrize("s3", ATTACKS.values(), ids=ATTACKS)
def test_bucket_is_not_allowed(tmp_path, s3):
    # Managed etcd would connect to its own members.
    conditions = run(tmp_path, lambda world: world.attack(s3=s3, etcd={"useKubeEtcd": True}))
    bucket = conditions["BucketReady"]
    assert (bucket["status"], bucket["reason"]) == ("False", "NotAllowed"), bucket
    is_named = any(
        f"operator.{each}" in bucket["message"]
        for each in ("allowedBuckets", "allowedRoles", "allowedEndpoints")
    )
    assert is_named or "is not of the form" in bucket["message"]


ETCD_ATTACKS = {
    "etcd of the victim": ({"endpoints": [VICTIMS_ETCD]}, "UsedByAnotherCluster", "victim/"),
    "etcd of Kubernetes": ({"useKubeEtcd": True}, "NotAllowed", "operator.allowKubeEtcd"),
    "metadata service": (
        {"endpoints": [f"{METADATA_SERVICE}:80"]},
        "NotAllowed",
        "operator.allowedEndpoints",
    ),
    "second member": (
        {"endpoints": ["10.0.0.66:2379", "metadata.example.com:80"]},
        "NotAllowed",
        "operator.allowedEndpoints",
    ),
    "snapshot of another bucket": (
        {"restoreFrom": "latest", "snapshots": {"endpoint": "http://127.0.0.1:9093"}},
        "Unusable",
        "operator.allowedEndpoints",
    ),
}


@pytest.mark.parametrize(
    ("etcd", "reason", "message"), ETCD_ATTACKS.values(), ids=ETCD_ATTACKS.keys()
)
def test_etcd_is_not_allowed(tmp_path, etcd, reason, message):
    desired = {"tlsSecretRef": "own-tls", **etcd}
    bucket = {"bucket": "victims-bucket"}
    conditions = run(tmp_path, lambda world: world.attack(s3=bucket, etcd=desired))
    condition = conditions["EtcdReady"]
    assert (condition["status"], condition["reason"]) == ("False", reason), condition
    assert message in condition["message"]


SECRET_FIELDS = [
    {"s3": KEYS | {"credentialsSecretRef": "../../victim/secrets/s3-keys"}},
    {"etcd": {"endpoints": [VICTIMS_ETCD], "tlsSecretRef": "../../victim/secrets/tls"}},
    {"etcd": {"snapshots": {"credentialsSecretRef": "../../victim/secrets/s3-keys"}}},
    {"brokers": {"envSecrets": ["../../victim/secrets/s3-keys"]}},
    {"s3": KEYS | {"region": "example.com/#"}},
    {"s3": {"bucket": f"arn:aws:s3:::{METADATA_SERVICE}#"}},
    {"etcd": {"snapshots": {"bucket": f"{METADATA_SERVICE}/"}}},
]


@pytest.mark.parametrize("spec", SECRET_FIELDS)
def test_names_that_lead_elsewhere_are_no_valid_spec(tmp_path, spec):
    async def scenario(world):
        writes = len(world.kube.writes)
        assert await world.attack(**spec) == {}
        # Only the attacker's own resource was written.
        assert [each.name for each in world.kube.writes[writes:]] == ["evil"]

    run(tmp_path, scenario)


def test_topic_of_the_victim_is_neither_adopted_nor_deleted(tmp_path):
    async def scenario(world):
        spec = {"clusterRef": "production", "partitions": 1}
        topic = await world.create(TOPICS, "attacker", "victim-orders", spec=spec)
        await world.topics.reconcile(topic)
        reported = await world.kube.get(TOPICS, "attacker", "victim-orders")
        [ready] = [each for each in reported["status"]["conditions"] if each["type"] == "Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "ClusterNotFound")
        assert await world.topics.finalize(reported)

    run(tmp_path, scenario)


def test_victim_may_use_what_the_settings_allow(tmp_path):
    async def scenario(world):
        cluster = read_cluster(await world.kube.get(CLUSTERS, "victim", "production"))
        bucket = await world.buckets.bucket(cluster)
        assert (bucket.name, bucket.access_key) == ("victims-bucket", "")
        snapshots = await world.buckets.bucket_config(cluster, cluster.spec.snapshots_s3)
        assert snapshots.name == "victims-bucket"
        assert names.etcd(cluster) in VICTIMS_ETCD

    run(tmp_path, scenario)
