"""Clusters that fall asleep and wake, with an API server in memory and doorbells that are real."""

import asyncio
from types import SimpleNamespace

import pytest

from kafscale.control_plane.errors import UnreachableError
from kafscale.errors import KubeError
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.operator.cluster.rollout_plan import Pod, View
from kafscale.operator.cluster.scale_to_zero.controller import Sleeper
from kafscale.operator.cluster.scale_to_zero.policy import MARK, WAKE
from kafscale.operator.kube.kinds import CLUSTERS, ENDPOINT_SLICES, STATEFUL_SETS
from kafscale.operator.spec.cluster import read_cluster
from kafscale.operator.work_queue import Bells, Resource
from services.memory_kube import MemoryKube
from unit.broker.harness import heartbeat, run

IDLE_SECONDS = 60
SPEC = {
    "brokers": {"replicas": 2},
    "s3": {"bucket": "records"},
    "autoscaling": {"scaleToZero": {"enabled": True, "idleSeconds": IDLE_SECONDS}},
}
RESOURCE = Resource(CLUSTERS.kind, "default", "demo")


class Stage:
    """A cluster of two brokers, and somebody who looks after its sleep."""

    def __init__(self, kube=None):
        self.kube = kube or MemoryKube()
        self.bells = Bells()
        self.idle_seconds = 0.0
        self.are_ready = True
        self.now_ms = 10_000_000
        self.ready_ms = 0
        self.flushed = []
        self.failure = None
        brokers = {each: BrokerInfo(id=each, epoch=1, host="a", port=9092) for each in (0, 1)}
        self.metadata = SimpleNamespace(brokers=brokers)
        self.sleepers = []
        self.start_operator()

    def start_operator(self, address="127.0.0.1"):
        """A new operator, which knows nothing of what the one before it has done."""
        self.sleeper = Sleeper(
            self.kube,
            self,
            self.bells,
            lambda: self.now_ms,
            host="127.0.0.1",
            address=address,
            flush=self.flush,
        )
        self.sleepers.append(self.sleeper)

    async def begin(self, **autoscaling):
        spec = SPEC | {"autoscaling": SPEC["autoscaling"] | autoscaling}
        where = {"name": "demo", "namespace": "default"}
        body = {"apiVersion": CLUSTERS.api_version, "kind": CLUSTERS.kind, "metadata": where}
        await self.kube.create(body | {"spec": spec})
        where = {"name": "demo-broker", "namespace": "default"}
        body = {"apiVersion": "apps/v1", "kind": STATEFUL_SETS.kind, "metadata": where}
        await self.kube.create(body | {"spec": {"replicas": 2}})

    async def end(self):
        for sleeper in self.sleepers:
            await sleeper.close()

    async def survey(self, _metadata):
        return SimpleNamespace(idle_seconds=self.idle_seconds)

    async def flush(self, broker):
        if self.failure is not None:
            raise self.failure
        assert await self.replicas() > 0, "brokers are asked while there are some"
        self.flushed.append(broker.id)
        return 1

    async def look(self):
        """Look once, and do as the roller would."""
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
        wanted = None if cluster.spec.autoscaling.enabled else cluster.spec.brokers.replicas
        view = View(pods=pods, replicas=replicas, wanted=wanted, revision="r")
        rest = await self.sleeper.look(cluster, body, stateful_set, view, self.metadata)
        if rest.view.wanted is not None and rest.view.wanted != rest.view.replicas:
            await self.scale(rest.view.wanted)
        return rest

    async def scale(self, replicas):
        await self.kube.merge(
            STATEFUL_SETS,
            "default",
            "demo-broker",
            {"spec": {"replicas": replicas}},
            subresource="scale",
        )

    async def replicas(self):
        found = await self.kube.get(STATEFUL_SETS, "default", "demo-broker")
        return found["spec"]["replicas"]

    async def mark(self):
        found = await self.kube.get(STATEFUL_SETS, "default", "demo-broker")
        return found["metadata"].get("annotations", {}).get(MARK)

    async def doorbell(self):
        """Where the EndpointSlice leads, if there is one."""
        found = await self.kube.get(ENDPOINT_SLICES, "default", "demo-broker-doorbell")
        if found is None:
            return None
        return found["endpoints"][0]["addresses"][0], found["ports"][0]["port"]

    async def knock(self):
        """A client connects to the Service; wait until it is heard."""
        _, writer = await asyncio.open_connection(*await self.doorbell())
        writer.write(heartbeat(1))
        await self.bells.wait(RESOURCE, 10)
        writer.transport.abort()

    async def annotate(self, annotations):
        await self.kube.merge(
            CLUSTERS, "default", "demo", {"metadata": {"annotations": annotations}}
        )

    @property
    def told(self):
        return [event.reason for event in self.kube.told]


def play(body, **autoscaling):
    async def story():
        stage = Stage()
        await stage.begin(**autoscaling)
        try:
            await body(stage)
        finally:
            await stage.end()

    run(story)


async def asleep(stage):
    stage.idle_seconds = IDLE_SECONDS
    assert (await stage.look()).is_asleep
    stage.idle_seconds = None


@pytest.mark.parametrize("is_autoscaled", [True, False], ids=["autoscaled", "fixed"])
def test_a_cluster_falls_asleep_and_a_client_wakes_it(is_autoscaled):
    async def body(stage):
        stage.idle_seconds = 45.0
        rest = await stage.look()
        assert (rest.is_asleep, rest.seconds) == (False, 15)
        written = len(stage.kube.writes)
        await stage.look()
        assert len(stage.kube.writes) == written, "one that is awake costs no writes"
        await asleep(stage)
        assert (await stage.replicas(), await stage.mark()) == (0, "asleep")
        assert stage.flushed == [0, 1]
        written = len(stage.kube.writes)
        rest = await stage.look()
        assert (rest.is_asleep, rest.view.wanted) == (True, 0)
        assert len(stage.kube.writes) == written, "nor does one that sleeps"

        await stage.knock()
        stage.are_ready = False
        rest = await stage.look()
        assert (rest.is_asleep, rest.view.wanted) == (False, 2)
        assert (await stage.replicas(), await stage.mark()) == (2, "waking")
        await stage.look()
        assert await stage.doorbell() is not None, "brokers are not there yet"
        stage.are_ready = True
        await stage.look()
        assert (await stage.doorbell(), await stage.mark()) == (None, None)
        assert await stage.replicas() == 2
        assert stage.told == ["FellAsleep", "WokeUp"]

    play(body, enabled=is_autoscaled)


def test_autoscaling_has_its_way_once_it_is_awake():
    async def body(stage):
        await stage.scale(4)
        await asleep(stage)
        await stage.knock()
        await stage.look()
        assert await stage.replicas() == 3
        await stage.scale(5)
        assert (await stage.look()).view.wanted is None
        assert await stage.replicas() == 5

    play(body, minReplicas=3)


@pytest.mark.parametrize("failure", ["away", "unknown", "starting"])
def test_a_cluster_that_is_not_all_well_stays_awake(failure):
    async def body(stage):
        stage.idle_seconds = None if failure == "unknown" else IDLE_SECONDS
        stage.are_ready = failure != "starting"
        if failure == "away":
            stage.failure = UnreachableError("a:9093", "UNAVAILABLE", "no route")
        assert not (await stage.look()).is_asleep
        assert (await stage.replicas(), await stage.mark(), stage.told) == (2, None, [])

    play(body)


def test_brokers_that_have_just_come_are_given_time_for_clients():
    async def body(stage):
        stage.idle_seconds = IDLE_SECONDS + 7
        stage.ready_ms = stage.now_ms - 20_000
        rest = await stage.look()
        assert (rest.is_asleep, rest.seconds) == (False, IDLE_SECONDS - 20)
        stage.now_ms += 40_000
        assert (await stage.look()).is_asleep

    play(body)


def test_somebody_wakes_it_by_an_annotation_which_is_taken_away():
    async def body(stage):
        await asleep(stage)
        await stage.annotate({WAKE: "now", "other": "stays"})
        await stage.look()
        assert (await stage.replicas(), await stage.mark()) == (2, "waking")
        resource = await stage.kube.get(CLUSTERS, "default", "demo")
        assert resource["metadata"]["annotations"] == {"other": "stays"}

    play(body)


@pytest.mark.parametrize(
    "change",
    [{"config": {"segmentBytes": 1}}, {"autoscaling": {"scaleToZero": {"enabled": False}}}],
    ids=str,
)
def test_a_change_of_its_resource_wakes_it(change):
    async def body(stage):
        await asleep(stage)
        await stage.kube.merge(CLUSTERS, "default", "demo", {"spec": change})
        await stage.look()
        await stage.look()
        assert (await stage.replicas(), await stage.mark()) == (2, None)

    play(body)


def test_the_next_operator_hangs_up_a_bell_of_its_own():
    async def body(stage):
        await asleep(stage)
        before = await stage.doorbell()
        stage.start_operator()
        assert (await stage.look()).is_asleep
        assert await stage.doorbell() != before
        await stage.knock()
        await stage.look()
        assert await stage.replicas() == 2

    play(body)


def test_an_operator_that_cannot_be_reached_lets_nobody_sleep():
    async def body(stage):
        await asleep(stage)
        stage.start_operator(address="")
        await stage.look()
        assert (await stage.replicas(), stage.told) == (2, ["FellAsleep", "WokeUp"])
        await stage.look()
        stage.idle_seconds = IDLE_SECONDS
        assert not (await stage.look()).is_asleep
        assert await stage.mark() is None

    play(body)


def test_a_cluster_that_is_gone_takes_its_bell_with_it():
    async def body(stage):
        await asleep(stage)
        address = await stage.doorbell()
        await stage.sleeper.forget("default", "demo")
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await asyncio.open_connection(*address)

    play(body)


class Mortal(MemoryKube):
    """An API server that fails once, at its so many-th write, before or after it is done."""

    def __init__(self):
        super().__init__()
        self.writes_left = None
        self.is_done = False

    def _keep(self, verb, place, after):
        if self.writes_left is not None:
            self.writes_left -= 1
            if self.writes_left < 0:
                self.writes_left = None
                if self.is_done:
                    super()._keep(verb, place, after)
                raise KubeError("the operator dies here")
        return super()._keep(verb, place, after)


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("count", range(4))
def test_an_operator_may_die_at_every_write(count, is_done):
    async def story():
        stage = Stage(Mortal())
        await stage.begin()
        stage.kube.is_done = is_done

        async def through(goal):
            stage.kube.writes_left = count
            for _ in range(4):
                try:
                    await stage.look()
                except KubeError:
                    stage.start_operator()
            stage.kube.writes_left = None
            assert (await stage.replicas(), await stage.mark()) == goal

        stage.idle_seconds = IDLE_SECONDS
        await through((0, "asleep"))
        stage.idle_seconds = 0.0
        await stage.annotate({WAKE: "now"})
        await through((2, None))
        assert await stage.doorbell() is None
        await stage.end()

    run(story)
