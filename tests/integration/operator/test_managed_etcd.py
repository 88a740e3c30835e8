"""Tests of a managed etcd with real members: form, lose a member, scale and restart."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.base import Put
from kafscale.metadata.store.etcd import EtcdStore
from kafscale.operator.etcd.connection import etcd_settings
from kafscale.operator.etcd.health import EtcdState
from kafscale.operator.etcd.reconciler import EtcdReconciler
from kafscale.operator.kube.api import CONFIG_MAPS, PODS, VOLUME_CLAIMS
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster, read_cluster
from kafscale.operator.tenants import TenantRules
from services.etcd_pods import EtcdPods
from services.memory_kube import MemoryKube

PLATFORM = Platform()
SECONDS_MAX = 60

pytestmark = pytest.mark.timeout(120)


def cluster(**managed: Any) -> Cluster:
    metadata = {"name": "shop", "namespace": "web", "uid": "d2c1", "generation": 1}
    spec = {"brokers": {}, "s3": {"bucket": "records"}, "etcd": {"managed": managed}}
    return read_cluster({"metadata": metadata, "spec": spec})


class EtcdFixture:
    """An operator with one cluster, whose pods are processes."""

    def __init__(self, directory: Path, pods: EtcdPods) -> None:
        self.kube = pods.kube
        self.pods = pods
        self.directory = directory
        self.reconciler = EtcdReconciler(
            pods.kube,
            PLATFORM,
            clock=lambda: time.time_ns() // 1_000_000,
            directory=directory,
            newest_snapshot=self._no_snapshot,
            rules=TenantRules(),
            connect=pods.connect,
            lost_after_ms=500,
            query_ms_max=1000,
        )

    async def reconcile_until(
        self, desired: Cluster, condition: Callable[[EtcdState], bool]
    ) -> EtcdState:
        """Reconcile until the condition holds."""
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            state = await self.reconciler.reconcile(desired)
            await self.pods.step()
            if condition(state):
                return state
            assert time.monotonic() < deadline, state
            await asyncio.sleep(0.05)

    async def reconcile_until_healthy(self, desired: Cluster, count: int = 3) -> EtcdState:
        """Reconcile until all members are healthy and nothing is left to do."""
        return await self.reconcile_until(
            desired,
            lambda state: (
                not state.is_busy
                and (state.members, state.members_ready) == (count, count)
                and all(each.status == "True" for each in state.conditions)
            ),
        )

    async def store(self, state: EtcdState) -> EtcdStore:
        """The store of this etcd, as a broker opens it."""
        settings = await etcd_settings(self.kube, "web", state.access, self.directory)
        return EtcdStore(self.pods.settings(settings))

    async def mode(self) -> str:
        config_map = await self.kube.get(CONFIG_MAPS, "web", "shop-etcd-bootstrap")
        return config_map["data"]["mode"] if config_map else ""

    async def uids(self) -> dict[str, str]:
        pods = await self.kube.list(PODS, "web")
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in pods}

    @staticmethod
    async def _no_snapshot(_cluster: Cluster) -> str:
        raise AssertionError


async def write_when_available(store: EtcdStore, key: str) -> None:
    """Write a key, after a leader election if necessary."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            await store.commit([], [Put(key, b"")])
        except StoreUnavailableError:
            assert time.monotonic() < deadline
        else:
            return


@pytest.fixture
def run_test(tmp_path):
    """Runs the body of a test, an async function of a fixture."""

    def run(body, desired):
        async def scenario():
            with EtcdPods(MemoryKube(), desired, PLATFORM, tmp_path) as pods:
                await body(EtcdFixture(tmp_path / "certificates", pods))

        asyncio.run(scenario())

    return run


def test_three_members_form_a_cluster(run_test):
    desired = cluster()

    async def body(fixture):
        state = await fixture.reconcile_until_healthy(desired)
        assert state.is_ready
        assert state.status().managed
        assert state.database_bytes
        assert await fixture.mode() == "formed"
        store = await fixture.store(state)
        await store.commit([], [Put("/a", b"1")])
        await store.close()

    run_test(body, desired)


@pytest.mark.long
def test_member_without_data_is_replaced_without_loss(run_test):
    desired = cluster()

    async def body(fixture):
        state = await fixture.reconcile_until_healthy(desired)
        store = await fixture.store(state)
        await store.commit([], [Put("/before", b"1")])
        uids = await fixture.uids()

        fixture.pods.lose("shop-etcd-1")
        state = await fixture.reconcile_until(desired, lambda state: state.members_ready == 2)
        assert state.is_ready
        await store.commit([], [Put("/meanwhile", b"2")])
        await fixture.reconcile_until_healthy(desired)

        assert await fixture.mode() == "formed"
        assert {e.key for e in (await store.range("/")).entries} == {"/before", "/meanwhile"}
        after = await fixture.uids()
        assert after.pop("shop-etcd-1") != uids.pop("shop-etcd-1")
        assert after == uids
        # The replaced member counts: the cluster tolerates the loss of another one.
        fixture.pods.broken.add("shop-etcd-0")
        fixture.pods.kill("shop-etcd-0")
        await write_when_available(store, "/after")
        await store.close()

    run_test(body, desired)


@pytest.mark.long
def test_lost_volume_is_replaced(run_test):
    desired = cluster()

    async def body(fixture):
        await fixture.reconcile_until_healthy(desired)
        await fixture.kube.delete(PODS, "web", "shop-etcd-2")
        await fixture.kube.delete(VOLUME_CLAIMS, "web", "data-shop-etcd-2")
        await fixture.reconcile_until(desired, lambda state: state.members == 2)
        await fixture.reconcile_until_healthy(desired)

    run_test(body, desired)


def test_loss_of_all_data_never_forms_an_empty_cluster(run_test):
    desired = cluster()

    async def body(fixture):
        await fixture.reconcile_until_healthy(desired)
        for index in range(3):
            fixture.pods.kill(f"shop-etcd-{index}")
        for index in range(3):
            fixture.pods.lose(f"shop-etcd-{index}")
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            state = await fixture.reconciler.reconcile(desired)
            await fixture.pods.step()
            await asyncio.sleep(0.2)
        assert not state.is_ready
        [ready] = [each for each in state.conditions if each.type == "EtcdReady"]
        assert ready.reason == "NoQuorum"

    run_test(body, desired)


@pytest.mark.long
def test_scale_from_one_to_three_members_and_back(run_test):
    desired, fewer = cluster(), cluster(replicas=1)

    async def body(fixture):
        state = await fixture.reconcile_until_healthy(fewer, 1)
        store = await fixture.store(state)
        await store.commit([], [Put("/a", b"1")])
        await store.close()
        state = await fixture.reconcile_until_healthy(desired)
        store = await fixture.store(state)
        assert len((await store.range("/")).entries) == 1
        await store.close()
        await fixture.reconcile_until_healthy(fewer, 1)
        assert list(await fixture.uids()) == ["shop-etcd-0"]

    run_test(body, desired)


@pytest.mark.long
def test_spec_change_restarts_members_one_at_a_time(run_test):
    desired = cluster()
    other = msgspec.structs.replace(desired, spec=cluster(quota="1Gi").spec)

    async def body(fixture):
        await fixture.reconcile_until_healthy(desired)
        before = uids = await fixture.uids()
        while before.items() & uids.items():
            state = await fixture.reconcile_until(other, lambda _state: True)
            now = await fixture.uids()
            assert len(uids.items() - now.items()) <= 1
            assert state.is_ready
            uids = now
        await fixture.reconcile_until_healthy(other)
        assert len(uids) == 3

    run_test(body, desired)
