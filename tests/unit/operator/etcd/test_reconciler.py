"""Tests of the etcd reconciler with scripted members; real ones are in tests/integration."""

import asyncio
from typing import Any, Self

import pytest
from msgspec.structs import replace

from kafscale.config.sections.etcd import Etcd
from kafscale.config.sections.operator import Operator
from kafscale.errors import KubeError, OperatingError, StoreUnavailableError
from kafscale.metadata.store.etcd.maintenance import Alarm, EtcdMember, MemberStatus
from kafscale.operator.etcd.reconciler import EtcdReconciler
from kafscale.operator.kube.api import (
    CONFIG_MAPS,
    NETWORK_POLICIES,
    PODS,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
)
from kafscale.operator.manifests.etcd import stateful_set as etcd_stateful_set
from kafscale.operator.manifests.names import Platform
from kafscale.operator.tenants import TenantRules
from services.authorized_kube import AuthorizedKube
from services.memory_kube import MemoryKube
from unit.operator.manifests.clusters import cluster

PLATFORM = Platform()
HOUR_MS = 3_600_000


class Members:
    """Scripted members by endpoint, and the calls made to them."""

    def __init__(self, *statuses: tuple[str, MemberStatus]) -> None:
        self.statuses = dict(statuses)
        self.member_list: list[EtcdMember] = []
        self.alarms: list[Alarm] = []
        self.calls: list[tuple[str, str]] = []
        self.failure: Exception | None = None

    def connect(self, endpoint: str, _settings: Etcd) -> "Member":
        return Member(self, endpoint)


class Member:
    def __init__(self, members: Members, endpoint: str) -> None:
        self._members = members
        self._endpoint = endpoint

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def status(self) -> MemberStatus:
        if self._endpoint not in self._members.statuses:
            raise StoreUnavailableError(f"{self._endpoint} refused the connection")
        return self._members.statuses[self._endpoint]

    async def members(self) -> list[EtcdMember]:
        return self._members.member_list

    async def alarms(self) -> list[Alarm]:
        return self._members.alarms

    def __getattr__(self, verb: str) -> Any:
        async def execute(*_: Any, **__: Any) -> None:
            if self._members.failure:
                raise self._members.failure
            self._members.calls.append((verb, self._endpoint))

        return execute


class EtcdFixture:
    """A reconciler with its dependencies."""

    def __init__(self, directory, endpoints=(), **settings):
        self.kube = MemoryKube()
        self.operator_kube = AuthorizedKube(self.kube)
        self.members = Members()
        self.now_ms = 1_750_000_000_000
        self.newest: str | OperatingError = "prefix/a.b/20260131T120000Z-1.db"
        self.reconciler = EtcdReconciler(
            self.operator_kube,
            PLATFORM,
            clock=lambda: self.now_ms,
            directory=directory,
            newest_snapshot=self._newest,
            rules=TenantRules(Operator(**settings), self._resolve),
            settings_endpoints=endpoints,
            connect=self.members.connect,
        )

    def reconcile(self, desired):
        return asyncio.run(self.reconciler.reconcile(desired))

    def get(self, kind, name):
        return asyncio.run(self.kube.get(kind, "kafscale", name))

    def bootstrap(self):
        return self.get(CONFIG_MAPS, "shop-etcd-bootstrap")["data"]

    def start_pods(self, desired):
        """Create pods, claims and healthy members, as Kubernetes would."""
        stateful_set = self.get(STATEFUL_SETS, "shop-etcd")
        template = stateful_set["spec"]["template"]
        for index in range(stateful_set["spec"]["replicas"]):
            name = etcd_stateful_set.name(desired, index)
            url = etcd_stateful_set.client_url(desired, PLATFORM, index)
            peer = etcd_stateful_set.peer_url(desired, PLATFORM, index)
            self._create("Pod", name, {**template["metadata"]}, template["spec"])
            [claim] = stateful_set["spec"]["volumeClaimTemplates"]
            self._create("PersistentVolumeClaim", f"data-{name}", claim["metadata"], claim["spec"])
            self.members.statuses[url] = MemberStatus("3.6.5", 10, 9, 100, 100 + index, 7, 42)
            self.members.member_list.append(EtcdMember(100 + index, name, (peer,), (url,)))

    def mark_pods_ready(self, desired):
        status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        for index in range(3):
            name = etcd_stateful_set.name(desired, index)
            self.patch_status(name, status)

    def patch_status(self, pod, status):
        asyncio.run(self.kube.merge_patch(PODS, "kafscale", pod, status, subresource="status"))

    def _create(self, kind, name, metadata, spec):
        manifest = {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {**metadata, "name": name, "namespace": "kafscale"},
            "spec": spec,
        }
        asyncio.run(self.kube.create(manifest))

    async def _resolve(self, host):
        return [host] if host.startswith("127.") else []

    async def _newest(self, _cluster):
        if isinstance(self.newest, OperatingError):
            raise self.newest
        return self.newest


def resource(etcd=None, **more):
    spec = {"brokers": {}, "s3": {"bucket": "records"}, "etcd": etcd or {}, **more}
    return cluster(spec, "shop")


@pytest.fixture
def fixture(tmp_path):
    return EtcdFixture(tmp_path)


HEALTHY = MemberStatus("3.6.5", 10, 9, 1, 1, 7, 42)
LEADERLESS = MemberStatus("3.6.5", 10, 9, 0, 2, 7, 42)


def test_external_etcd_is_only_observed(tmp_path):
    fixture = EtcdFixture(tmp_path, endpoints=["a:2379", "b:2379", "c:2379"])
    fixture.members.statuses = {"a:2379": HEALTHY, "b:2379": LEADERLESS}
    state = fixture.reconcile(resource())
    assert state.is_ready
    assert state.status().managed is False
    assert (state.members_ready, state.database_bytes) == (1, 10)
    assert fixture.kube.objects == {}
    fixture.members.statuses = {"b:2379": LEADERLESS}
    state = fixture.reconcile(resource())
    assert not state.is_ready
    assert "refused the connection" in state.conditions[0].message


def test_etcd_of_another_cluster_is_not_used(tmp_path):
    fixture = EtcdFixture(tmp_path, endpoints=["a:2379"])
    fixture.members.statuses = {"a:2379": HEALTHY}
    spec = {"brokers": {}, "s3": {"bucket": "records"}}
    asyncio.run(
        fixture.kube.create(
            {
                "apiVersion": "kafscale.io/v1alpha1",
                "kind": "KafscaleCluster",
                "metadata": {"name": "older", "namespace": "kafscale"},
                "spec": spec,
            }
        )
    )
    state = fixture.reconcile(resource())
    assert not state.is_ready
    assert state.conditions[0].reason == "UsedByAnotherCluster"
    assert "kafscale/older" in state.conditions[0].message


def test_missing_secret_is_reported(fixture):
    state = fixture.reconcile(resource({"endpoints": ["a:2379"], "tlsSecretRef": "missing"}))
    assert not state.is_ready
    assert "'missing'" in state.conditions[0].message


def test_etcd_on_the_host_of_the_operator_is_not_contacted(tmp_path):
    fixture = EtcdFixture(tmp_path)
    fixture.members.statuses = {"127.0.0.1:2379": HEALTHY}
    desired = resource({"endpoints": ["127.0.0.1:2379"]})
    [condition] = fixture.reconcile(desired).conditions
    assert (condition.type, condition.reason) == ("EtcdReady", "NotAllowed")
    assert "'kafscale/127.0.0.1' in operator.allowedEndpoints" in condition.message
    fixture = EtcdFixture(tmp_path, allowed_endpoints=("kafscale/127.0.0.1",))
    fixture.members.statuses = {"127.0.0.1:2379": HEALTHY}
    assert fixture.reconcile(desired).is_ready


def test_etcd_in_the_settings_may_be_anywhere(tmp_path):
    fixture = EtcdFixture(tmp_path, endpoints=["127.0.0.1:2379"])
    fixture.members.statuses = {"127.0.0.1:2379": HEALTHY}
    assert fixture.reconcile(resource()).is_ready


def test_kube_etcd_needs_the_switch_of_the_operator(fixture):
    [condition] = fixture.reconcile(resource({"useKubeEtcd": True})).conditions
    assert (condition.type, condition.reason) == ("EtcdReady", "NotAllowed")
    assert "operator.allowKubeEtcd" in condition.message


def test_kube_etcd_is_found_by_its_pods(tmp_path):
    fixture = EtcdFixture(tmp_path, allow_kube_etcd=True)
    desired = resource({"useKubeEtcd": True})
    assert fixture.reconcile(desired).conditions[0].reason == "NotFound"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "e", "namespace": "kube-system", "labels": {"component": "etcd"}},
    }
    asyncio.run(fixture.kube.create(pod))
    address = {"status": {"podIP": "10.0.0.1"}}
    asyncio.run(fixture.kube.merge_patch(PODS, "kube-system", "e", address, subresource="status"))
    fixture.members.statuses = {"https://10.0.0.1:2379": HEALTHY}
    assert fixture.reconcile(desired).is_ready


def test_managed_etcd_forms_and_then_accepts_no_empty_members(fixture):
    desired = resource()
    state = fixture.reconcile(desired)
    assert not state.is_ready
    assert state.is_busy
    assert state.members is None
    assert fixture.bootstrap()["mode"] == "forming"
    assert fixture.get(STATEFUL_SETS, "shop-etcd")["spec"]["replicas"] == 3
    fixture.start_pods(desired)
    state = fixture.reconcile(desired)
    assert state.is_ready
    assert (state.members, state.members_ready) == (3, 3)
    assert fixture.bootstrap()["mode"] == "formed"
    assert not fixture.reconcile(desired).is_busy


def test_leftovers_of_a_former_cluster_are_waited_for(fixture):
    former = replace(resource(), uid="uid-of-the-former")
    fixture.reconcile(former)
    writes = len(fixture.kube.writes)
    state = fixture.reconcile(resource())
    assert not state.is_ready
    assert "StatefulSet shop-etcd" in state.conditions[0].message
    assert len(fixture.kube.writes) == writes
    fixture.kube.objects.clear()
    assert fixture.reconcile(resource()).is_busy
    assert fixture.bootstrap()["mode"] == "forming"


def test_unchanged_objects_are_not_written_again(fixture):
    desired = resource()
    fixture.reconcile(desired)
    fixture.start_pods(desired)
    fixture.reconcile(desired)
    count = len(fixture.kube.writes)
    fixture.reconcile(desired)
    assert len(fixture.kube.writes) == count


def test_lost_bootstrap_config_never_lets_members_start_empty(fixture):
    desired = resource()
    fixture.reconcile(desired)
    asyncio.run(fixture.kube.delete(CONFIG_MAPS, "kafscale", "shop-etcd-bootstrap"))
    fixture.reconcile(desired)
    assert fixture.bootstrap()["mode"] == "formed"


def test_all_members_restore_the_same_snapshot(fixture):
    desired = resource({"restoreFrom": "latest"})
    fixture.reconcile(desired)
    first, fixture.newest = fixture.newest, "prefix/a.b/20270131T120000Z-2.db"
    fixture.reconcile(desired)
    template = fixture.get(STATEFUL_SETS, "shop-etcd")["spec"]["template"]
    [container] = template["spec"]["initContainers"]
    assert f"--snapshot={first}" in container["command"]
    fixture.start_pods(desired)
    fixture.reconcile(desired)
    assert (
        "initContainers" not in fixture.get(STATEFUL_SETS, "shop-etcd")["spec"]["template"]["spec"]
    )
    # After it has formed no pod may restore again: those that could are replaced.
    assert fixture.get(PODS, "shop-etcd-2")
    fixture.mark_pods_ready(desired)
    fixture.reconcile(desired)
    assert fixture.get(PODS, "shop-etcd-2") is None
    assert fixture.get(PODS, "shop-etcd-1")


def test_nothing_is_created_without_the_requested_snapshot(fixture):
    fixture.newest = OperatingError("there is no snapshot")
    state = fixture.reconcile(resource({"restoreFrom": "latest"}))
    assert not state.is_ready
    assert state.conditions[0].message == "there is no snapshot"
    assert fixture.get(STATEFUL_SETS, "shop-etcd") is None


def test_failed_actions_are_retried(fixture):
    desired = resource()
    fixture.reconcile(desired)
    fixture.start_pods(desired)
    fixture.reconcile(desired)
    fixture.members.alarms = [Alarm(101, "NOSPACE")]
    fixture.members.failure = StoreUnavailableError("busy")
    state = fixture.reconcile(desired)
    assert state.is_busy
    assert fixture.members.calls == []
    fixture.members.failure = None
    fixture.reconcile(desired)
    assert [verb for verb, _ in fixture.members.calls] == ["compact", "defragment", "disarm"]
    assert fixture.members.calls[1][1] == etcd_stateful_set.client_url(desired, PLATFORM, 1)


def test_member_is_replaced_only_after_being_unresponsive_for_a_while(fixture):
    desired = resource()
    fixture.reconcile(desired)
    fixture.start_pods(desired)
    fixture.reconcile(desired)
    del fixture.members.statuses[etcd_stateful_set.client_url(desired, PLATFORM, 1)]
    crashed = {"status": {"containerStatuses": [{"restartCount": 9}]}}
    fixture.patch_status("shop-etcd-1", crashed)
    fixture.reconcile(desired)
    assert fixture.members.calls == []
    fixture.now_ms += HOUR_MS
    fixture.reconcile(desired)
    leader = etcd_stateful_set.client_url(desired, PLATFORM, 0)
    assert fixture.members.calls == [("remove_member", leader)]


def test_volume_claims_grow_and_their_templates_stay(fixture):
    fixture.reconcile(resource())
    fixture.start_pods(resource())
    fixture.reconcile(resource({"managed": {"storage": "20Gi"}}))
    for index in range(3):
        claim = fixture.get(VOLUME_CLAIMS, f"data-shop-etcd-{index}")
        assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"
    [template] = fixture.get(STATEFUL_SETS, "shop-etcd")["spec"]["volumeClaimTemplates"]
    assert template["spec"]["resources"]["requests"]["storage"] == "10Gi"


def test_disabled_network_policy_is_deleted(fixture):
    fixture.reconcile(resource())
    assert fixture.get(NETWORK_POLICIES, "shop-etcd")
    fixture.reconcile(resource(networkPolicy={"enabled": False}))
    assert fixture.get(NETWORK_POLICIES, "shop-etcd") is None


def test_kubernetes_failure_is_an_error(fixture):
    fixture.kube.failure = KubeError("away", 503)
    with pytest.raises(KubeError):
        fixture.reconcile(resource())
