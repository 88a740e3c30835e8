"""A managed etcd of real members: it forms, loses a member, grows, shrinks and is restarted."""

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
from kafscale.operator.kube.kinds import CONFIG_MAPS, PODS, VOLUME_CLAIMS
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster, read_cluster
from services.etcd_pods import EtcdPods
from services.memory_kube import MemoryKube

PLATFORM = Platform()
SECONDS_MAX = 60

pytestmark = pytest.mark.timeout(120)


def cluster(**managed: Any) -> Cluster:
    metadata = {"name": "shop", "namespace": "web", "uid": "d2c1", "generation": 1}
    spec = {"brokers": {}, "s3": {"bucket": "records"}, "etcd": {"managed": managed}}
    return read_cluster({"metadata": metadata, "spec": spec})


class World:
    """An operator with one cluster, whose pods are processes."""

    def __init__(self, directory: Path, pods: EtcdPods) -> None:
        self.kube = pods.kube
        self.pods = pods
        self.directory = directory
        self.keeper = EtcdReconciler(
            pods.kube,
            PLATFORM,
            clock=lambda: time.time_ns() // 1_000_000,
            directory=directory,
            newest_snapshot=self._no_snapshot,
            connect=pods.connect,
            lost_after_ms=500,
            query_ms_max=1000,
        )

    async def until(self, wanted: Cluster, is_so: Callable[[EtcdState], bool]) -> EtcdState:
        """Go round until it is so."""
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            state = await self.keeper.reconcile(wanted)
            await self.pods.step()
            if is_so(state):
                return state
            assert time.monotonic() < deadline, state
            await asyncio.sleep(0.05)

    async def whole(self, wanted: Cluster, count: int = 3) -> EtcdState:
        """Go round until all is well and nothing is left to do."""
        return await self.until(
            wanted,
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
        found = await self.kube.get(CONFIG_MAPS, "web", "shop-etcd-bootstrap")
        return found["data"]["mode"] if found else ""

    async def uids(self) -> dict[str, str]:
        pods = await self.kube.list(PODS, "web")
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in pods}

    @staticmethod
    async def _no_snapshot(_cluster: Cluster) -> str:
        raise AssertionError


async def written(store: EtcdStore, key: str) -> None:
    """Write something, be it that a leader has to be elected first."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            await store.commit([], [Put(key, b"")])
        except StoreUnavailableError:
            assert time.monotonic() < deadline
        else:
            return


@pytest.fixture
def play(tmp_path):
    """Runs the body of a test, an async function of a world."""

    def run(body, wanted):
        async def scenario():
            with EtcdPods(MemoryKube(), wanted, PLATFORM, tmp_path) as pods:
                await body(World(tmp_path / "certificates", pods))

        asyncio.run(scenario())

    return run


def test_three_members_form_a_cluster_that_only_those_with_a_certificate_use(play):
    wanted = cluster()

    async def body(world):
        state = await world.whole(wanted)
        assert state.is_ready
        assert state.status().managed
        assert state.database_bytes
        assert await world.mode() == "formed"
        store = await world.store(state)
        await store.commit([], [Put("/a", b"1")])
        await store.close()

    play(body, wanted)


def test_a_member_that_has_lost_its_data_comes_back_as_another_and_nothing_is_lost(play):
    wanted = cluster()

    async def body(world):
        state = await world.whole(wanted)
        store = await world.store(state)
        await store.commit([], [Put("/before", b"1")])
        uids = await world.uids()

        world.pods.lose("shop-etcd-1")
        state = await world.until(wanted, lambda state: state.members_ready == 2)
        assert state.is_ready
        await store.commit([], [Put("/meanwhile", b"2")])
        await world.whole(wanted)

        assert await world.mode() == "formed"
        assert {e.key for e in (await store.range("/")).entries} == {"/before", "/meanwhile"}
        after = await world.uids()
        assert after.pop("shop-etcd-1") != uids.pop("shop-etcd-1")
        assert after == uids
        # The one that came back counts: the cluster can do without another.
        world.pods.broken.add("shop-etcd-0")
        world.pods.kill("shop-etcd-0")
        await written(store, "/after")
        await store.close()

    play(body, wanted)


def test_a_volume_that_is_gone_is_replaced(play):
    wanted = cluster()

    async def body(world):
        await world.whole(wanted)
        await world.kube.delete(PODS, "web", "shop-etcd-2")
        await world.kube.delete(VOLUME_CLAIMS, "web", "data-shop-etcd-2")
        await world.until(wanted, lambda state: state.members == 2)
        await world.whole(wanted)

    play(body, wanted)


def test_when_all_data_are_lost_no_empty_cluster_takes_their_place(play):
    wanted = cluster()

    async def body(world):
        await world.whole(wanted)
        for index in range(3):
            world.pods.kill(f"shop-etcd-{index}")
        for index in range(3):
            world.pods.lose(f"shop-etcd-{index}")
        ends = time.monotonic() + 4
        while time.monotonic() < ends:
            state = await world.keeper.reconcile(wanted)
            await world.pods.step()
            await asyncio.sleep(0.2)
        assert not state.is_ready
        [ready] = [each for each in state.conditions if each.type == "EtcdReady"]
        assert ready.reason == "NoQuorum"

    play(body, wanted)


def test_one_member_becomes_three_and_one_again(play):
    wanted, fewer = cluster(), cluster(replicas=1)

    async def body(world):
        state = await world.whole(fewer, 1)
        store = await world.store(state)
        await store.commit([], [Put("/a", b"1")])
        await store.close()
        state = await world.whole(wanted)
        store = await world.store(state)
        assert len((await store.range("/")).entries) == 1
        await store.close()
        await world.whole(fewer, 1)
        assert list(await world.uids()) == ["shop-etcd-0"]

    play(body, wanted)


def test_a_change_of_the_spec_restarts_members_one_by_one(play):
    wanted = cluster()
    other = msgspec.structs.replace(wanted, spec=cluster(quota="1Gi").spec)

    async def body(world):
        await world.whole(wanted)
        before = uids = await world.uids()
        while before.items() & uids.items():
            state = await world.until(other, lambda _state: True)
            now = await world.uids()
            assert len(uids.items() - now.items()) <= 1
            assert state.is_ready
            uids = now
        await world.whole(other)
        assert len(uids) == 3

    play(body, wanted)
