"""The keeper of etcds, with members that are told what to say; real ones are in the integration."""

import asyncio
from typing import Any, Self

import pytest
from msgspec.structs import replace

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KubeError, OperatingError, StoreUnavailableError
from kafscale.metadata.store.etcd.maintenance import Alarm, EtcdMember, MemberStatus
from kafscale.operator.etcd.keeping import EtcdKeeper
from kafscale.operator.kube.kinds import (
    CONFIG_MAPS,
    NETWORK_POLICIES,
    PODS,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
)
from kafscale.operator.manifests.etcd import stateful_set as etcd_stateful_set
from kafscale.operator.manifests.names import Platform
from services.memory_kube import MemoryKube
from unit.operator.manifests.clusters import cluster

PLATFORM = Platform()
HOUR_MS = 3_600_000


class Members:
    """Members by their endpoints, and what has been asked of them."""

    def __init__(self, *statuses: tuple[str, MemberStatus]) -> None:
        self.statuses = dict(statuses)
        self.listed: list[EtcdMember] = []
        self.alarms: list[Alarm] = []
        self.done: list[tuple[str, str]] = []
        self.failure: Exception | None = None

    def connect(self, endpoint: str, _settings: Etcd) -> "Member":
        return Member(self, endpoint)


class Member:
    def __init__(self, all_: Members, endpoint: str) -> None:
        self._all = all_
        self._endpoint = endpoint

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def status(self) -> MemberStatus:
        if self._endpoint not in self._all.statuses:
            raise StoreUnavailableError(f"{self._endpoint} refuses")
        return self._all.statuses[self._endpoint]

    async def members(self) -> list[EtcdMember]:
        return self._all.listed

    async def alarms(self) -> list[Alarm]:
        return self._all.alarms

    def __getattr__(self, verb: str) -> Any:
        async def do(*_: Any, **__: Any) -> None:
            if self._all.failure:
                raise self._all.failure
            self._all.done.append((verb, self._endpoint))

        return do


class World:
    """A keeper, and what it has to do with."""

    def __init__(self, directory, endpoints=()):
        self.kube = MemoryKube()
        self.members = Members()
        self.now_ms = 1_750_000_000_000
        self.newest: str | OperatingError = "prefix/a.b/20260131T120000Z-1.db"
        self.keeper = EtcdKeeper(
            self.kube,
            PLATFORM,
            clock=lambda: self.now_ms,
            directory=directory,
            newest_snapshot=self._newest,
            settings_endpoints=endpoints,
            connect=self.members.connect,
        )

    def ensure(self, wanted):
        return asyncio.run(self.keeper.ensure(wanted))

    def get(self, kind, name):
        return asyncio.run(self.kube.get(kind, "kafscale", name))

    def door(self):
        return self.get(CONFIG_MAPS, "shop-etcd-admission")["data"]

    def run_pods(self, wanted):
        """Have Kubernetes make pods and claims, and members that are well."""
        stateful_set = self.get(STATEFUL_SETS, "shop-etcd")
        template = stateful_set["spec"]["template"]
        for index in range(stateful_set["spec"]["replicas"]):
            name = etcd_stateful_set.name(wanted, index)
            url = etcd_stateful_set.client_url(wanted, PLATFORM, index)
            peer = etcd_stateful_set.peer_url(wanted, PLATFORM, index)
            self._make("Pod", name, {**template["metadata"]}, template["spec"])
            [claim] = stateful_set["spec"]["volumeClaimTemplates"]
            self._make("PersistentVolumeClaim", f"data-{name}", claim["metadata"], claim["spec"])
            self.members.statuses[url] = MemberStatus("3.6.5", 10, 9, 100, 100 + index, 7, 42)
            self.members.listed.append(EtcdMember(100 + index, name, (peer,), (url,)))

    def make_ready(self, wanted):
        status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        for index in range(3):
            name = etcd_stateful_set.name(wanted, index)
            self.merge(name, status)

    def merge(self, pod, status):
        asyncio.run(self.kube.merge(PODS, "kafscale", pod, status, subresource="status"))

    def _make(self, kind, name, metadata, spec):
        manifest = {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {**metadata, "name": name, "namespace": "kafscale"},
            "spec": spec,
        }
        asyncio.run(self.kube.create(manifest))

    async def _newest(self, _cluster):
        if isinstance(self.newest, OperatingError):
            raise self.newest
        return self.newest


def resource(etcd=None, **more):
    spec = {"brokers": {}, "s3": {"bucket": "records"}, "etcd": etcd or {}, **more}
    return cluster(spec, "shop")


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


WELL = MemberStatus("3.6.5", 10, 9, 1, 1, 7, 42)
LOST = MemberStatus("3.6.5", 10, 9, 0, 2, 7, 42)


def test_an_etcd_that_is_given_is_only_looked_at(tmp_path):
    world = World(tmp_path, endpoints=["a:2379", "b:2379", "c:2379"])
    world.members.statuses = {"a:2379": WELL, "b:2379": LOST}
    state = world.ensure(resource())
    assert state.is_ready
    assert state.status().managed is False
    assert (state.members_ready, state.database_bytes) == (1, 10)
    assert world.kube.objects == {}
    world.members.statuses = {"b:2379": LOST}
    state = world.ensure(resource())
    assert not state.is_ready
    assert "refuses" in state.conditions[0].message


def test_an_etcd_that_another_cluster_has_is_not_used(tmp_path):
    world = World(tmp_path, endpoints=["a:2379"])
    world.members.statuses = {"a:2379": WELL}
    spec = {"brokers": {}, "s3": {"bucket": "records"}}
    asyncio.run(
        world.kube.create(
            {
                "apiVersion": "kafscale.io/v1alpha1",
                "kind": "KafscaleCluster",
                "metadata": {"name": "elder", "namespace": "kafscale"},
                "spec": spec,
            }
        )
    )
    state = world.ensure(resource())
    assert not state.is_ready
    assert state.conditions[0].reason == "TakenByAnother"
    assert "kafscale/elder" in state.conditions[0].message


def test_a_secret_that_is_missing_is_told_of(world):
    state = world.ensure(resource({"endpoints": ["a:2379"], "tlsSecretRef": "missing"}))
    assert not state.is_ready
    assert "'missing'" in state.conditions[0].message


def test_the_etcd_of_kubernetes_is_found_by_its_pods(world):
    wanted = resource({"useKubeEtcd": True})
    assert world.ensure(wanted).conditions[0].reason == "NotFound"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "e", "namespace": "kube-system", "labels": {"component": "etcd"}},
    }
    asyncio.run(world.kube.create(pod))
    address = {"status": {"podIP": "10.0.0.1"}}
    asyncio.run(world.kube.merge(PODS, "kube-system", "e", address, subresource="status"))
    world.members.statuses = {"https://10.0.0.1:2379": WELL}
    assert world.ensure(wanted).is_ready


def test_a_managed_etcd_forms_and_then_shuts_its_door(world):
    wanted = resource()
    state = world.ensure(wanted)
    assert not state.is_ready
    assert state.is_busy
    assert state.members is None
    assert world.door()["door"] == "forming"
    assert world.get(STATEFUL_SETS, "shop-etcd")["spec"]["replicas"] == 3
    world.run_pods(wanted)
    state = world.ensure(wanted)
    assert state.is_ready
    assert (state.members, state.members_ready) == (3, 3)
    assert world.door()["door"] == "closed"
    assert not world.ensure(wanted).is_busy


def test_the_etcd_of_a_former_cluster_is_waited_out(world):
    former = replace(resource(), uid="uid-of-the-former")
    world.ensure(former)
    writes = len(world.kube.writes)
    state = world.ensure(resource())
    assert not state.is_ready
    assert "StatefulSet shop-etcd" in state.conditions[0].message
    assert len(world.kube.writes) == writes
    world.kube.objects.clear()
    assert world.ensure(resource()).is_busy
    assert world.door()["door"] == "forming"


def test_what_is_as_it_should_be_is_not_written_again(world):
    wanted = resource()
    world.ensure(wanted)
    world.run_pods(wanted)
    world.ensure(wanted)
    count = len(world.kube.writes)
    world.ensure(wanted)
    assert len(world.kube.writes) == count


def test_where_pods_have_been_nobody_begins_with_nothing(world):
    wanted = resource()
    world.ensure(wanted)
    asyncio.run(world.kube.delete(CONFIG_MAPS, "kafscale", "shop-etcd-admission"))
    world.ensure(wanted)
    assert world.door()["door"] == "closed"


def test_all_members_begin_with_one_snapshot_however_often_it_is_asked(world):
    wanted = resource({"restoreFrom": "latest"})
    world.ensure(wanted)
    first, world.newest = world.newest, "prefix/a.b/20270131T120000Z-2.db"
    world.ensure(wanted)
    template = world.get(STATEFUL_SETS, "shop-etcd")["spec"]["template"]
    [container] = template["spec"]["initContainers"]
    assert f"--snapshot={first}" in container["command"]
    world.run_pods(wanted)
    world.ensure(wanted)
    assert "initContainers" not in world.get(STATEFUL_SETS, "shop-etcd")["spec"]["template"]["spec"]
    # Now that it has formed, no pod may restore again: those that could are replaced.
    assert world.get(PODS, "shop-etcd-2")
    world.make_ready(wanted)
    world.ensure(wanted)
    assert world.get(PODS, "shop-etcd-2") is None
    assert world.get(PODS, "shop-etcd-1")


def test_without_a_snapshot_to_begin_with_nothing_is_begun(world):
    world.newest = OperatingError("there is no snapshot")
    state = world.ensure(resource({"restoreFrom": "latest"}))
    assert not state.is_ready
    assert state.conditions[0].message == "there is no snapshot"
    assert world.get(STATEFUL_SETS, "shop-etcd") is None


def test_what_is_planned_is_done_and_what_fails_is_tried_again(world):
    wanted = resource()
    world.ensure(wanted)
    world.run_pods(wanted)
    world.ensure(wanted)
    world.members.alarms = [Alarm(101, "NOSPACE")]
    world.members.failure = StoreUnavailableError("busy")
    state = world.ensure(wanted)
    assert state.is_busy
    assert world.members.done == []
    world.members.failure = None
    world.ensure(wanted)
    assert [verb for verb, _ in world.members.done] == ["compact", "defragment", "disarm"]
    assert world.members.done[1][1] == etcd_stateful_set.client_url(wanted, PLATFORM, 1)


def test_a_member_counts_as_lost_only_after_it_was_seen_silent_for_a_while(world):
    wanted = resource()
    world.ensure(wanted)
    world.run_pods(wanted)
    world.ensure(wanted)
    del world.members.statuses[etcd_stateful_set.client_url(wanted, PLATFORM, 1)]
    crashed = {"status": {"containerStatuses": [{"restartCount": 9}]}}
    world.merge("shop-etcd-1", crashed)
    world.ensure(wanted)
    assert world.members.done == []
    world.now_ms += HOUR_MS
    world.ensure(wanted)
    leader = etcd_stateful_set.client_url(wanted, PLATFORM, 0)
    assert world.members.done == [("remove_member", leader)]


def test_volumes_are_asked_to_grow_and_the_set_keeps_its_claims(world):
    world.ensure(resource())
    world.run_pods(resource())
    world.ensure(resource({"managed": {"storage": "20Gi"}}))
    for index in range(3):
        claim = world.get(VOLUME_CLAIMS, f"data-shop-etcd-{index}")
        assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"
    [template] = world.get(STATEFUL_SETS, "shop-etcd")["spec"]["volumeClaimTemplates"]
    assert template["spec"]["resources"]["requests"]["storage"] == "10Gi"


def test_a_policy_that_is_not_wanted_any_more_goes(world):
    world.ensure(resource())
    assert world.get(NETWORK_POLICIES, "shop-etcd")
    world.ensure(resource(networkPolicy={"enabled": False}))
    assert world.get(NETWORK_POLICIES, "shop-etcd") is None


def test_trouble_with_kubernetes_is_an_error(world):
    world.kube.failure = KubeError("away", 503)
    with pytest.raises(KubeError):
        world.ensure(resource())
