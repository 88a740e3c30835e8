"""The operator has the permissions that it needs, and no other.

`AuthorizedKube` forbids what config/rbac does not grant. These scenarios use all that it grants, so
that a rule or verb that is not needed any more fails the last test.
"""

import asyncio

from doubles import virtual_time
from kafscale.observability.metrics.operator import OperatorMetrics
from kafscale.operator.cluster.bucket import BucketReconciler
from kafscale.operator.cluster.manifests import ManifestApplier
from kafscale.operator.cluster.rollout import RolloutExecutor
from kafscale.operator.cluster.rollout_plan import Pod, RolloutState
from kafscale.operator.event_sources import watch
from kafscale.operator.kube.api import CLUSTERS, TOPICS
from kafscale.operator.kube.lease import Leadership
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.tenants import TenantRules
from kafscale.operator.work_queue import WorkQueue
from services.authorized_kube import AuthorizedKube
from services.memory_kube import MemoryKube
from services.rbac import OPERATOR_FILES, Permission, granted
from unit.operator.cluster.scale_to_zero.test_controller import (
    WAKE_ANNOTATION,
    ScaleToZeroFixture,
    scale_to_zero_now,
)
from unit.operator.etcd.test_reconciler import HEALTHY, EtcdFixture, resource
from unit.operator.test_two_tenants import World
from unit.operator.topics.fixture import TopicFixture

GROUP = CLUSTERS.api_version.partition("/")[0]
KOPF = {
    Permission(GROUP, kind.plural, verb)
    for kind in (CLUSTERS, TOPICS)
    for verb in ("get", "list", "watch", "patch")
}
"""tests/integration/operator/test_event_sources.py has what kopf does with custom resources; the
work queue gets them by name."""
ADMISSION = {
    Permission(GROUP, f"{kind.plural}/finalizers", "update") for kind in (CLUSTERS, TOPICS)
}
"""Kubernetes' admission asks for it, not a request."""


class LocalRollout(RolloutExecutor):
    """For brokers that do not run."""

    def address(self, _cluster, _pod):
        return "127.0.0.1:1"


def used(scenario):
    """The permissions that a scenario needs on an API server with all kinds."""
    kube = MemoryKube()
    kube.unknown = set()
    operator = AuthorizedKube(kube)
    asyncio.run(scenario(operator, kube))
    return operator.used


async def brokers(operator, _kube):
    access = EtcdAccess(endpoints=("etcd:2379",))
    applier = ManifestApplier(operator, Platform())
    await applier.apply(resource(), access, "checksum")
    without = {
        "autoscaling": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "monitoring": {"serviceMonitor": False},
    }
    await applier.apply(resource(**without), access, "checksum")


async def rollout(operator, kube):
    executor = LocalRollout(operator, Platform(), OperatorMetrics(lambda: 0), None)
    assert await executor.pods(resource()) == []
    body = {"metadata": {"name": "shop", "namespace": "kafscale"}}
    pod = Pod(name="shop-broker-0", ordinal=0, uid="", revision="old", is_ready=True)
    outdated = RolloutState(pods=[pod], replicas=1, desired=1, revision="new")
    await executor.step(resource(), body, outdated)
    too_few = RolloutState(pods=[], replicas=1, desired=2, revision="new")
    await executor.step(resource(), body, too_few)
    assert [each.reason for each in kube.events] == ["DrainFailed", "Restarted", "Scaled"]


async def nodes(operator, _kube):
    reconciler = BucketReconciler(operator, lambda: 0, TenantRules())
    condition = await reconciler._region(resource())
    assert condition.reason == "NodeRegionUnknown"


async def lease(operator, _kube):
    leadership = Leadership(
        operator, namespace="kafscale", name="lease", identity="a", monotonic=lambda: 0.0
    )
    await leadership.acquire()
    await leadership.release()


async def watches(operator, _kube):
    watching = asyncio.create_task(watch(operator, WorkQueue(), ("kafscale",)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not watching.done()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


def managed_etcd(directory):
    """Form, repair and grow an etcd, then use another one."""
    fixture = EtcdFixture(directory)
    desired = resource()
    fixture.reconcile(desired)
    fixture.start_pods(desired)
    fixture.reconcile(desired)
    fixture.members.member_list.pop(1)
    fixture.reconcile(desired)
    assert "add_member" in {verb for verb, _ in fixture.members.calls}
    fixture.reconcile(resource({"managed": {"storage": "20Gi"}}, networkPolicy={"enabled": False}))
    fixture.members.statuses["a:2379"] = HEALTHY
    fixture.reconcile(resource({"endpoints": ["a:2379"]}))
    return fixture.operator_kube.used


def scale_to_zero():
    async def scenario():
        fixture = ScaleToZeroFixture()
        await fixture.start()
        try:
            await scale_to_zero_now(fixture)
            await fixture.annotate({WAKE_ANNOTATION: "now"})
            await fixture.reconcile()
            await fixture.reconcile()
        finally:
            await fixture.close()
        return fixture.operator_kube.used

    return asyncio.run(scenario())


def topics():
    async def scenario(random):
        fixture = TopicFixture(random)
        await fixture.open()
        await fixture.apply()
        await fixture.reconcile()
        return fixture.operator_kube.used

    return virtual_time.run(scenario, seed=1)


def cluster(directory):
    async def scenario():
        world = World(directory)
        await world.attack(etcd={"useKubeEtcd": True})
        return world.operator_kube.used

    return asyncio.run(scenario())


def test_every_permission_is_used(tmp_path):
    needed = set().union(
        *(used(each) for each in (brokers, rollout, nodes, lease, watches)),
        managed_etcd(tmp_path),
        scale_to_zero(),
        topics(),
        cluster(tmp_path),
        KOPF,
        ADMISSION,
    )
    assert granted(*OPERATOR_FILES) == needed


def test_secrets_are_not_listed():
    verbs = {each.verb for each in granted(*OPERATOR_FILES) if each.resource == "secrets"}
    assert verbs == {"get", "create", "patch"}
