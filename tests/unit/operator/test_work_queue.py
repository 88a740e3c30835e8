"""Tests of the work queue and its worker: no notification is lost, and failures are isolated."""

import asyncio
from random import Random
from typing import Any

import pytest

from doubles.virtual_time import run
from kafscale.errors import OperatingError
from kafscale.observability.metrics.operator import OperatorMetrics
from kafscale.operator.kube.api import Manifest
from kafscale.operator.work_queue import BACKOFF_SECONDS_MAX, ResourceKey, Worker, WorkQueue
from services.memory_kube import MemoryKube

DEMO, OTHER = ResourceKey("Cluster", "default", "demo"), ResourceKey("Cluster", "other", "demo")


def test_wait_ends_after_the_timeout() -> None:
    async def scenario(_: Random) -> None:
        started = asyncio.get_running_loop().time()
        await WorkQueue().wait(DEMO, 30)
        assert asyncio.get_running_loop().time() - started == 30

    run(scenario, seed=0)


def test_notification_wakes_one_wait() -> None:
    async def scenario(_: Random) -> None:
        queue, now = WorkQueue(), asyncio.get_running_loop().time
        asyncio.get_running_loop().call_later(5, queue.notify, DEMO)
        await queue.wait(DEMO, 30)
        assert now() == 5
        await queue.wait(DEMO, 30)
        assert now() == 35

    run(scenario, seed=0)


def test_notification_without_a_waiter_is_kept() -> None:
    async def scenario(_: Random) -> None:
        queue, now = WorkQueue(), asyncio.get_running_loop().time
        queue.notify(DEMO)
        await queue.wait(DEMO, 30)
        assert now() == 0

    run(scenario, seed=0)


def test_notify_all_is_limited_to_kind_and_namespace() -> None:
    async def scenario(_: Random) -> None:
        queue, now = WorkQueue(), asyncio.get_running_loop().time
        both = asyncio.gather(queue.wait(DEMO, 30), queue.wait(OTHER, 40))
        await asyncio.sleep(1)
        queue.notify_all("Cluster", "default")
        queue.notify_all("Topic")
        await both
        assert now() == 40

    run(scenario, seed=0)


CLUSTER = ResourceKey("KafscaleCluster", "default", "demo")
BODY = {
    "apiVersion": "kafscale.io/v1alpha1",
    "kind": "KafscaleCluster",
    "metadata": {"name": "demo", "namespace": "default"},
    "spec": {},
}


class ScriptedReconciler:
    """Fails on request, and otherwise succeeds at once."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.bodies: list[Manifest] = []
        self.is_finalized = True

    async def reconcile(self, body: Manifest) -> float:
        self.bodies.append(body)
        if self.error:
            raise self.error
        return 30.0

    async def finalize(self, _body: Manifest) -> bool:
        if self.error:
            raise self.error
        return self.is_finalized


@pytest.fixture
def reconciler() -> ScriptedReconciler:
    return ScriptedReconciler()


@pytest.fixture
def metrics() -> OperatorMetrics:
    return OperatorMetrics(lambda: 0)


@pytest.fixture
def worker(reconciler: ScriptedReconciler, metrics: OperatorMetrics) -> Worker:
    kube = MemoryKube(lambda: 0)
    asyncio.run(kube.create(dict(BODY)))
    return Worker(kube, metrics, clusters=reconciler, topics=reconciler, monotonic=lambda: 0.0)


def test_resource_is_read_before_each_reconcile(
    worker: Worker, reconciler: ScriptedReconciler
) -> None:
    assert asyncio.run(worker.reconcile(CLUSTER)) == 30
    assert reconciler.bodies[0]["metadata"]["name"] == "demo"


def test_missing_resource_is_not_reconciled(worker: Worker, reconciler: ScriptedReconciler) -> None:
    asyncio.run(worker.reconcile(ResourceKey("KafscaleCluster", "default", "gone")))
    assert reconciler.bodies == []


@pytest.mark.parametrize("error", [OperatingError("no"), ZeroDivisionError()])
def test_backoff_grows_while_reconciling_fails(
    worker: Worker, reconciler: ScriptedReconciler, error: Exception
) -> None:
    reconciler.error = error
    delays = [asyncio.run(worker.reconcile(CLUSTER)) for _ in range(8)]
    assert delays == [2, 4, 8, 16, 32, *[BACKOFF_SECONDS_MAX] * 3]
    reconciler.error = None
    assert asyncio.run(worker.reconcile(CLUSTER)) == 30
    reconciler.error = error
    assert asyncio.run(worker.reconcile(CLUSTER)) == 2


def test_results_are_counted(
    worker: Worker, reconciler: ScriptedReconciler, metrics: OperatorMetrics
) -> None:
    asyncio.run(worker.reconcile(CLUSTER))
    reconciler.error = OperatingError("no")
    asyncio.run(worker.reconcile(CLUSTER))
    counted: dict[Any, Any] = dict(metrics.reconciles())
    assert counted == {("KafscaleCluster", "success"): 1, ("KafscaleCluster", "error"): 1}


def test_finalize_succeeds_once_the_reconciler_is_done(
    worker: Worker, reconciler: ScriptedReconciler
) -> None:
    reconciler.is_finalized = False
    assert not asyncio.run(worker.finalize(CLUSTER, dict(BODY)))
    reconciler.error = OperatingError("no")
    assert not asyncio.run(worker.finalize(CLUSTER, dict(BODY)))
    reconciler.error, reconciler.is_finalized = None, True
    assert asyncio.run(worker.finalize(CLUSTER, dict(BODY)))
