"""Doing what `sleep` decides: brokers are stopped and started again, and a doorbell is hung up.

The laws: segments are made of everything before brokers stop, and if one of them cannot, all stay
awake. A cluster is marked before its brokers are stopped, and stays so until one serves again and
the doorbell is gone; so whatever an operator has left half done, the next one finishes. A cluster
that no client could wake never sleeps.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec

from kafscale.control_plane.client import ControlClient
from kafscale.errors import KafscaleError
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.observability.logging import get_logger
from kafscale.operator.cluster.broker_status import Surveyor, control_address
from kafscale.operator.cluster.metadata import ClusterMetadata
from kafscale.operator.cluster.rollout import scale
from kafscale.operator.cluster.rollout_plan import View, plan
from kafscale.operator.cluster.scale_to_zero import policy
from kafscale.operator.cluster.scale_to_zero.policy import (
    ASLEEP,
    MARK,
    MARK_GENERATION,
    WAKE,
    WAKING,
    Act,
    Sight,
)
from kafscale.operator.cluster.scale_to_zero.wake_listener import Doorbell
from kafscale.operator.kube.api import Kube, Manifest
from kafscale.operator.kube.kinds import CLUSTERS, ENDPOINT_SLICES, STATEFUL_SETS
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import wake_endpoint_slice
from kafscale.operator.spec.cluster import Cluster
from kafscale.operator.work_queue import Bells, Resource

log = get_logger(__name__)

LOOK_SECONDS_MIN: Final = 2.0

Flush = Callable[[BrokerInfo], Awaitable[int]]
"""Has a broker make segments of all that it owns; of how many partitions."""


class Rest(NamedTuple):
    """What became of a cluster that may sleep."""

    view: View
    """The pods as they are wanted now."""
    is_asleep: bool = False
    seconds: float = float("inf")
    """After which to look again, if nothing rings before."""


class Sleeper:
    """Puts clusters to sleep, and wakes them."""

    def __init__(
        self,
        kube: Kube,
        surveyor: Surveyor,
        bells: Bells,
        clock: Callable[[], int],
        *,
        host: str,
        address: str,
        flush: Flush | None = None,
    ) -> None:
        """Doorbells listen on `host`, and are reached at `address`; empty has no cluster sleep.

        `clock` is in milliseconds.
        """
        self._kube = kube
        self._surveyor = surveyor
        self._bells = bells
        self._clock = clock
        self._host = host
        self._address = address
        self._flush = flush or over_control_plane
        self._doorbells: dict[Resource, Doorbell] = {}
        if not address:
            log.warning("no cluster sleeps: it is not known where clients would reach this pod")

    async def look(
        self,
        cluster: Cluster,
        body: Manifest,
        stateful_set: Manifest,
        view: View,
        metadata: ClusterMetadata | None,
    ) -> Rest:
        """Do what is due; `view` is what there is, and what would be wanted of one awake."""
        sight = await self._see(cluster, stateful_set, view, metadata)
        act = policy.decide(sight)
        if act is Act.FALL_ASLEEP:
            assert metadata is not None, "or nobody could know that it is idle"
            act = await self._fall_asleep(cluster, body, sight, metadata)
        elif act is Act.WAKE:
            await self._mark(cluster, WAKING)
            await self._tell(cluster, body, "WokeUp", policy.waking_reason(sight))
        elif act is Act.BE_AWAKE:
            await self._take_down(cluster)
            await self._mark(cluster, None)
        if sight.is_wished_for:
            await self._kube.merge(
                CLUSTERS, cluster.namespace, cluster.name, _annotated({WAKE: None})
            )
        if act is Act.SLEEP_ON:
            return await self._sleep_on(cluster, view)
        if act in {Act.WAKE, Act.GO_ON_WAKING}:
            await self._hang_up(cluster)
            return Rest(_awake(view, cluster))
        seconds = policy.seconds_to_sleep(sight)
        return Rest(view) if seconds is None else Rest(view, seconds=max(seconds, LOOK_SECONDS_MIN))

    async def forget(self, namespace: str, name: str) -> None:
        """A cluster is gone."""
        bell = self._doorbells.pop(Resource(CLUSTERS.kind, namespace, name), None)
        if bell is not None:
            await bell.close()

    async def close(self) -> None:
        for resource in list(self._doorbells):
            await self.forget(resource.namespace, resource.name)

    # --- seeing -------------------------------------------------------------------------------

    async def _see(
        self, cluster: Cluster, stateful_set: Manifest, view: View, metadata: ClusterMetadata | None
    ) -> Sight:
        wanted = cluster.spec.autoscaling.scale_to_zero
        may_sleep = wanted.enabled and bool(self._address)
        annotations = stateful_set["metadata"].get("annotations") or {}
        idle_seconds = None
        if may_sleep and metadata is not None and MARK not in annotations:
            idle_seconds = await self._idle_seconds(view, metadata)
        bell = self._doorbells.get(_resource(cluster))
        return Sight(
            idle_seconds_min=wanted.idle_seconds if may_sleep else None,
            idle_seconds=idle_seconds,
            is_settled=view.replicas > 0 and plan(view) is None,
            is_serving=any(
                pod.is_ready and pod.is_serving and not pod.is_terminating for pod in view.pods
            ),
            mark=annotations.get(MARK, ""),
            mark_generation=annotations.get(MARK_GENERATION, ""),
            generation=cluster.generation,
            is_called=bell is not None and bell.is_rung,
            is_wished_for=WAKE in cluster.annotations,
        )

    async def _idle_seconds(self, view: View, metadata: ClusterMetadata) -> float | None:
        """How long clients could have come to every broker, and none did."""
        told = (await self._surveyor.survey(metadata)).idle_seconds
        if told is None or not view.pods:
            return None
        ready_ms = max(pod.ready_ms for pod in view.pods)
        return min(told, (self._clock() - ready_ms) / 1000)

    # --- doing --------------------------------------------------------------------------------

    async def _fall_asleep(
        self, cluster: Cluster, body: Manifest, sight: Sight, metadata: ClusterMetadata
    ) -> Act:
        brokers = list(metadata.brokers.values())
        flushes = await asyncio.gather(*map(self._flush, brokers), return_exceptions=True)
        for broker, flushed in zip(brokers, flushes, strict=True):
            if isinstance(flushed, KafscaleError):
                log.warning("not put to sleep", broker_id=broker.id, reason=str(flushed))
                return Act.STAY_AWAKE
            if isinstance(flushed, BaseException):
                raise flushed
        await self._mark(cluster, ASLEEP)
        told = f"nobody was connected for {sight.idle_seconds_min} seconds"
        await self._tell(cluster, body, "FellAsleep", told)
        return Act.SLEEP_ON

    async def _sleep_on(self, cluster: Cluster, view: View) -> Rest:
        if view.replicas > 0:
            await scale(self._kube, cluster, 0)
        await self._hang_up(cluster)
        return Rest(msgspec.structs.replace(view, replicas=0, wanted=0), is_asleep=True)

    async def _hang_up(self, cluster: Cluster) -> None:
        """Have a doorbell where clients come; an operator that starts has to hang up its own."""
        if not self._address:
            return
        resource = _resource(cluster)
        bell = self._doorbells.get(resource)
        if bell is None:
            bell = Doorbell(lambda: self._bells.ring(resource))
            await bell.open(self._host)
            self._doorbells[resource] = bell
        await self._kube.apply(
            wake_endpoint_slice.endpoint_slice(cluster, self._address, bell.port)
        )

    async def _take_down(self, cluster: Cluster) -> None:
        await self._kube.delete(
            ENDPOINT_SLICES, cluster.namespace, wake_endpoint_slice.name(cluster)
        )
        await self.forget(cluster.namespace, cluster.name)

    async def _mark(self, cluster: Cluster, mark: str | None) -> None:
        generation = None if mark is None else str(cluster.generation)
        marks = _annotated({MARK: mark, MARK_GENERATION: generation})
        await self._kube.merge(STATEFUL_SETS, cluster.namespace, names.broker(cluster), marks)

    async def _tell(self, cluster: Cluster, body: Manifest, word: str, message: str) -> None:
        log.info(
            "cluster fell asleep" if word == "FellAsleep" else "cluster woke up",
            cluster=cluster.name,
            namespace=cluster.namespace,
            reason=message,
        )
        await self._kube.tell(body, word, message)


async def over_control_plane(broker: BrokerInfo) -> int:
    """Have a broker flush, where it has registered its control plane."""
    async with ControlClient(control_address(broker)) as client:
        return len(await client.flush())


def _awake(view: View, cluster: Cluster) -> View:
    """What is wanted of a cluster that wakes: what autoscaling then makes of it is its own."""
    if view.wanted is None and view.replicas == 0:
        return msgspec.structs.replace(view, wanted=cluster.spec.replicas_min)
    return view


def _annotated(annotations: dict[str, str | None]) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}}


def _resource(cluster: Cluster) -> Resource:
    return Resource(CLUSTERS.kind, cluster.namespace, cluster.name)
