"""Tests of scaling to zero and waking up, with an in-memory API server and real listeners."""

import asyncio
from types import SimpleNamespace

import pytest

from kafscale.control_plane.errors import UnreachableError
from kafscale.errors import KubeError
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.operator.cluster.rollout_plan import Pod, RolloutState
from kafscale.operator.cluster.scale_to_zero.controller import ScaleToZeroController
from kafscale.operator.cluster.scale_to_zero.policy import STATE_ANNOTATION, WAKE_ANNOTATION
from kafscale.operator.kube.api import CLUSTERS, ENDPOINT_SLICES, STATEFUL_SETS
from kafscale.operator.spec.cluster import read_cluster
from kafscale.operator.work_queue import ResourceKey, WorkQueue
from services.authorized_kube import AuthorizedKube
from services.memory_kube import MemoryKube
from unit.broker.harness import heartbeat, run

IDLE_SECONDS = 60
SPEC = {
    "brokers": {"replicas": 2},
    "s3": {"bucket": "records"},
    "autoscaling": {"scaleToZero": {"enabled": True, "idleSeconds": IDLE_SECONDS}},
}
KEY = ResourceKey(CLUSTERS.kind, "default", "demo")


class ScaleToZeroFixture:
    """A cluster of two brokers, and the controller."""

    def __init__(self, kube=None):
        self.kube = kube or MemoryKube()
        self.operator_kube = AuthorizedKube(self.kube)
        self.queue = WorkQueue()
        self.idle_seconds = 0.0
        self.are_ready = True
        self.now_ms = 10_000_000
        self.ready_ms = 0
        self.flushed = []
        self.failure = None
        brokers = {each: BrokerInfo(id=each, epoch=1, host="a", port=9092) for each in (0, 1)}
        self.metadata = SimpleNamespace(view=SimpleNamespace(brokers=brokers))
        self.controllers = []
        self.start_operator()

    def start_operator(self, address="127.0.0.1"):
        """Start a new operator without any state of the former one."""
        self.controller = ScaleToZeroController(
            self.operator_kube,
            self,
            self.queue,
            lambda: self.now_ms,
            host="127.0.0.1",
            address=address,
            flush=self.flush,
        )
        self.controllers.append(self.controller)

    async def start(self, **autoscaling):
        spec = SPEC | {"autoscaling": SPEC["autoscaling"] | autoscaling}
        metadata = {"name": "demo", "namespace": "default"}
        body = {"apiVersion": CLUSTERS.api_version, "kind": CLUSTERS.kind, "metadata": metadata}
        await self.kube.create(body | {"spec": spec})
        metadata = {"name": "demo-broker", "namespace": "default"}
        body = {"apiVersion": "apps/v1", "kind": STATEFUL_SETS.kind, "metadata": metadata}
        await self.kube.create(body | {"spec": {"replicas": 2}})

    async def close(self):
        for controller in self.controllers:
            await controller.close()

    async def collect(self, _metadata):
        return SimpleNamespace(idle_seconds=self.idle_seconds)

    async def flush(self, _cluster, broker):
        if self.failure is not None:
            raise self.failure
        assert await self.replicas() > 0, "brokers flush before they stop"
        self.flushed.append(broker.id)
        return 1

    async def reconcile(self):
        """Reconcile once, and scale as the rollout would."""
        body = await self.kube.get(CLUSTERS, "default", "demo")
        cluster = read_cluster(body)
        stateful_set = await self.kube.get(STATEFUL_SETS, "default", "demo-broker")
        replicas = stateful_set["spec"]["replicas"]
        pods = [
            Pod(
                name=f"b-{each}",
                ordinal=each,
                uid="",
                revision="r",
                is_ready=self.are_ready,
                ready_ms=self.ready_ms,
            )
            for each in range(replicas)
        ]
        desired = None if cluster.spec.autoscaling.enabled else cluster.spec.brokers.replicas
        state = RolloutState(pods=pods, replicas=replicas, desired=desired, revision="r")
        outcome = await self.controller.reconcile(cluster, body, stateful_set, state, self.metadata)
        if outcome.state.desired is not None and outcome.state.desired != outcome.state.replicas:
            await self.scale(outcome.state.desired)
        return outcome

    async def scale(self, replicas):
        await self.kube.merge_patch(
            STATEFUL_SETS,
            "default",
            "demo-broker",
            {"spec": {"replicas": replicas}},
            subresource="scale",
        )

    async def replicas(self):
        value = await self.kube.get(STATEFUL_SETS, "default", "demo-broker")
        return value["spec"]["replicas"]

    async def recorded_state(self):
        value = await self.kube.get(STATEFUL_SETS, "default", "demo-broker")
        return value["metadata"].get("annotations", {}).get(STATE_ANNOTATION)

    async def listener_address(self):
        """The address in the EndpointSlice, if there is one."""
        value = await self.kube.get(ENDPOINT_SLICES, "default", "demo-broker-wake")
        if value is None:
            return None
        return value["endpoints"][0]["addresses"][0], value["ports"][0]["port"]

    async def connect_client(self):
        """Connect a client to the Service; return when it has woken the cluster."""
        _, writer = await asyncio.open_connection(*await self.listener_address())
        writer.write(heartbeat(1))
        await self.queue.wait(KEY, 10)
        writer.transport.abort()

    async def annotate(self, annotations):
        await self.kube.merge_patch(
            CLUSTERS, "default", "demo", {"metadata": {"annotations": annotations}}
        )

    @property
    def events(self):
        return [event.reason for event in self.kube.events]


def run_test(body, **autoscaling):
    async def scenario():
        fixture = ScaleToZeroFixture()
        await fixture.start(**autoscaling)
        try:
            await body(fixture)
        finally:
            await fixture.close()

    run(scenario)


async def scale_to_zero_now(fixture):
    fixture.idle_seconds = IDLE_SECONDS
    assert (await fixture.reconcile()).is_scaled_to_zero
    fixture.idle_seconds = None


@pytest.mark.parametrize("is_autoscaled", [True, False], ids=["autoscaled", "fixed"])
def test_idle_cluster_scales_to_zero_and_a_client_wakes_it(is_autoscaled):
    async def body(fixture):
        fixture.idle_seconds = 45.0
        outcome = await fixture.reconcile()
        assert (outcome.is_scaled_to_zero, outcome.seconds) == (False, 15)
        written = len(fixture.kube.writes)
        await fixture.reconcile()
        assert len(fixture.kube.writes) == written, "a running cluster causes no writes"
        await scale_to_zero_now(fixture)
        assert (await fixture.replicas(), await fixture.recorded_state()) == (0, "at-zero")
        assert fixture.flushed == [0, 1]
        written = len(fixture.kube.writes)
        outcome = await fixture.reconcile()
        assert (outcome.is_scaled_to_zero, outcome.state.desired) == (True, 0)
        assert len(fixture.kube.writes) == written, "nor does a cluster at zero"

        await fixture.connect_client()
        fixture.are_ready = False
        outcome = await fixture.reconcile()
        assert (outcome.is_scaled_to_zero, outcome.state.desired) == (False, 2)
        assert (await fixture.replicas(), await fixture.recorded_state()) == (2, "waking")
        await fixture.reconcile()
        assert await fixture.listener_address() is not None, "brokers are not ready yet"
        fixture.are_ready = True
        await fixture.reconcile()
        assert (await fixture.listener_address(), await fixture.recorded_state()) == (None, None)
        assert await fixture.replicas() == 2
        assert fixture.events == ["ScaledToZero", "WokenUp"]

    run_test(body, enabled=is_autoscaled)


def test_autoscaling_decides_after_the_wake_up():
    async def body(fixture):
        await fixture.scale(4)
        await scale_to_zero_now(fixture)
        await fixture.connect_client()
        await fixture.reconcile()
        assert await fixture.replicas() == 3
        await fixture.scale(5)
        assert (await fixture.reconcile()).state.desired is None
        assert await fixture.replicas() == 5

    run_test(body, minReplicas=3)


@pytest.mark.parametrize("failure", ["unreachable", "unknown", "starting"])
def test_cluster_with_a_problem_keeps_running(failure):
    async def body(fixture):
        fixture.idle_seconds = None if failure == "unknown" else IDLE_SECONDS
        fixture.are_ready = failure != "starting"
        if failure == "unreachable":
            fixture.failure = UnreachableError("a:9093", "UNAVAILABLE", "no route")
        assert not (await fixture.reconcile()).is_scaled_to_zero
        assert (await fixture.replicas(), await fixture.recorded_state(), fixture.events) == (
            2,
            None,
            [],
        )

    run_test(body)


def test_idle_time_counts_from_when_brokers_are_ready():
    async def body(fixture):
        fixture.idle_seconds = IDLE_SECONDS + 7
        fixture.ready_ms = fixture.now_ms - 20_000
        outcome = await fixture.reconcile()
        assert (outcome.is_scaled_to_zero, outcome.seconds) == (False, IDLE_SECONDS - 20)
        fixture.now_ms += 40_000
        assert (await fixture.reconcile()).is_scaled_to_zero

    run_test(body)


def test_wake_annotation_wakes_the_cluster_and_is_removed():
    async def body(fixture):
        await scale_to_zero_now(fixture)
        await fixture.annotate({WAKE_ANNOTATION: "now", "other": "stays"})
        await fixture.reconcile()
        assert (await fixture.replicas(), await fixture.recorded_state()) == (2, "waking")
        resource = await fixture.kube.get(CLUSTERS, "default", "demo")
        assert resource["metadata"]["annotations"] == {"other": "stays"}

    run_test(body)


@pytest.mark.parametrize(
    "change",
    [{"config": {"segmentBytes": 1}}, {"autoscaling": {"scaleToZero": {"enabled": False}}}],
    ids=str,
)
def test_change_of_the_resource_wakes_the_cluster(change):
    async def body(fixture):
        await scale_to_zero_now(fixture)
        await fixture.kube.merge_patch(CLUSTERS, "default", "demo", {"spec": change})
        await fixture.reconcile()
        await fixture.reconcile()
        assert (await fixture.replicas(), await fixture.recorded_state()) == (2, None)

    run_test(body)


def test_restarted_operator_starts_its_own_listener():
    async def body(fixture):
        await scale_to_zero_now(fixture)
        before = await fixture.listener_address()
        fixture.start_operator()
        assert (await fixture.reconcile()).is_scaled_to_zero
        assert await fixture.listener_address() != before
        await fixture.connect_client()
        await fixture.reconcile()
        assert await fixture.replicas() == 2

    run_test(body)


def test_operator_without_an_address_never_scales_to_zero():
    async def body(fixture):
        await scale_to_zero_now(fixture)
        fixture.start_operator(address="")
        await fixture.reconcile()
        assert (await fixture.replicas(), fixture.events) == (2, ["ScaledToZero", "WokenUp"])
        await fixture.reconcile()
        fixture.idle_seconds = IDLE_SECONDS
        assert not (await fixture.reconcile()).is_scaled_to_zero
        assert await fixture.recorded_state() is None

    run_test(body)


def test_forgotten_cluster_has_no_listener():
    async def body(fixture):
        await scale_to_zero_now(fixture)
        address = await fixture.listener_address()
        await fixture.controller.forget("default", "demo")
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await asyncio.open_connection(*address)

    run_test(body)


class CrashingKube(MemoryKube):
    """An API server that fails once, at its n-th write, before or after applying it."""

    def __init__(self):
        super().__init__()
        self.writes_left = None
        self.is_applied = False

    def _keep(self, verb, place, after):
        if self.writes_left is not None:
            self.writes_left -= 1
            if self.writes_left < 0:
                self.writes_left = None
                if self.is_applied:
                    super()._keep(verb, place, after)
                raise KubeError("the operator crashes here")
        return super()._keep(verb, place, after)


@pytest.mark.parametrize("is_applied", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("count", range(4))
def test_operator_may_crash_at_every_write(count, is_applied):
    async def scenario():
        fixture = ScaleToZeroFixture(CrashingKube())
        await fixture.start()
        fixture.kube.is_applied = is_applied

        async def reconcile_until(expected):
            fixture.kube.writes_left = count
            for _ in range(4):
                try:
                    await fixture.reconcile()
                except KubeError:
                    fixture.start_operator()
            fixture.kube.writes_left = None
            assert (await fixture.replicas(), await fixture.recorded_state()) == expected

        fixture.idle_seconds = IDLE_SECONDS
        await reconcile_until((0, "at-zero"))
        fixture.idle_seconds = 0.0
        await fixture.annotate({WAKE_ANNOTATION: "now"})
        await reconcile_until((2, None))
        assert await fixture.listener_address() is None
        await fixture.close()

    run(scenario)
