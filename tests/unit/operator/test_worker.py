"""One resource's trouble is its own."""

import asyncio
from typing import Any

import pytest

from kafscale.errors import OperatingError
from kafscale.observability.metrics.operator import OperatorMetrics
from kafscale.operator.kube.api import Manifest
from kafscale.operator.work_queue import Resource
from kafscale.operator.worker import PAUSE_SECONDS_MAX, Worker
from services.memory_kube import MemoryKube

CLUSTER = Resource("KafscaleCluster", "default", "demo")
BODY = {
    "apiVersion": "kafscale.io/v1alpha1",
    "kind": "KafscaleCluster",
    "metadata": {"name": "demo", "namespace": "default"},
    "spec": {},
}


class Scripted:
    """Fails as it is told to, and else is done at once."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.bodies: list[Manifest] = []
        self.is_done = True

    async def reconcile(self, body: Manifest) -> float:
        self.bodies.append(body)
        if self.error:
            raise self.error
        return 30.0

    async def let_go(self, _body: Manifest) -> bool:
        if self.error:
            raise self.error
        return self.is_done


@pytest.fixture
def scripted() -> Scripted:
    return Scripted()


@pytest.fixture
def metrics() -> OperatorMetrics:
    return OperatorMetrics(lambda: 0)


@pytest.fixture
def worker(scripted: Scripted, metrics: OperatorMetrics) -> Worker:
    kube = MemoryKube(lambda: 0)
    asyncio.run(kube.create(dict(BODY)))
    return Worker(kube, metrics, clusters=scripted, topics=scripted, steady=lambda: 0.0)


def test_it_is_read_anew_each_time(worker: Worker, scripted: Scripted) -> None:
    assert asyncio.run(worker.keep(CLUSTER)) == 30
    assert scripted.bodies[0]["metadata"]["name"] == "demo"


def test_one_that_is_gone_is_left_alone(worker: Worker, scripted: Scripted) -> None:
    asyncio.run(worker.keep(Resource("KafscaleCluster", "default", "gone")))
    assert scripted.bodies == []


@pytest.mark.parametrize("error", [OperatingError("no"), ZeroDivisionError()])
def test_pauses_grow_while_it_fails(worker: Worker, scripted: Scripted, error: Exception) -> None:
    scripted.error = error
    pauses = [asyncio.run(worker.keep(CLUSTER)) for _ in range(8)]
    assert pauses == [2, 4, 8, 16, 32, *[PAUSE_SECONDS_MAX] * 3]
    scripted.error = None
    assert asyncio.run(worker.keep(CLUSTER)) == 30
    scripted.error = error
    assert asyncio.run(worker.keep(CLUSTER)) == 2


def test_it_is_counted(worker: Worker, scripted: Scripted, metrics: OperatorMetrics) -> None:
    asyncio.run(worker.keep(CLUSTER))
    scripted.error = OperatingError("no")
    asyncio.run(worker.keep(CLUSTER))
    counted: dict[Any, Any] = dict(metrics.reconciles())
    assert counted == {("KafscaleCluster", "success"): 1, ("KafscaleCluster", "error"): 1}


def test_it_goes_when_it_is_let_go(worker: Worker, scripted: Scripted) -> None:
    scripted.is_done = False
    assert not asyncio.run(worker.let_go(CLUSTER, dict(BODY)))
    scripted.error = OperatingError("no")
    assert not asyncio.run(worker.let_go(CLUSTER, dict(BODY)))
    scripted.error, scripted.is_done = None, True
    assert asyncio.run(worker.let_go(CLUSTER, dict(BODY)))
