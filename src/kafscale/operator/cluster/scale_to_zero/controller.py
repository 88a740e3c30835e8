"""Executes the scale-to-zero policy: stops and starts brokers, and runs wake listeners.

Invariants: before brokers stop, all of them flush everything to segments; if one cannot, all keep
running. The state annotation is set before brokers are stopped, and stays until a broker serves
again and the wake listener is gone, so that the next operator finishes what a former one left half
done. A cluster that no client could wake is never scaled to zero.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec

from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.client import ControlClient
from kafscale.errors import KafscaleError
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.observability.logging import get_logger
from kafscale.operator.cluster.broker_status import BrokerStatusCollector
from kafscale.operator.cluster.metadata import ClusterMetadata
from kafscale.operator.cluster.rollout import scale
from kafscale.operator.cluster.rollout_plan import RolloutState, plan
from kafscale.operator.cluster.scale_to_zero import policy
from kafscale.operator.cluster.scale_to_zero.policy import (
    AT_ZERO,
    GENERATION_ANNOTATION,
    STATE_ANNOTATION,
    WAKE_ANNOTATION,
    WAKING,
    Action,
    Observation,
)
from kafscale.operator.cluster.scale_to_zero.wake_listener import WakeListener
from kafscale.operator.kube.api import CLUSTERS, ENDPOINT_SLICES, STATEFUL_SETS, Kube, Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import services
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster
from kafscale.operator.work_queue import ResourceKey, WorkQueue

logger = get_logger(__name__)

RECHECK_SECONDS_MIN: Final = 2.0

Flush = Callable[[Cluster, BrokerInfo], Awaitable[int]]
"""Makes a broker roll everything that it owns to segments; returns the number of partitions."""


class Outcome(NamedTuple):
    """The result of a reconcile."""

    state: RolloutState
    """The pods with the replicas that are desired now."""
    is_scaled_to_zero: bool = False
    seconds: float = float("inf")
    """The time until the next check, unless the queue is notified before."""


class ScaleToZeroController:
    """Scales idle clusters to zero, and wakes them."""

    def __init__(
        self,
        kube: Kube,
        collector: BrokerStatusCollector,
        queue: WorkQueue,
        clock: Callable[[], int],
        *,
        host: str,
        address: str,
        flush: Flush,
    ) -> None:
        """Wake listeners listen on `host` and are reached at `address`; empty disables the feature.

        `clock` is in milliseconds.
        """
        self._kube = kube
        self._collector = collector
        self._queue = queue
        self._clock = clock
        self._host = host
        self._address = address
        self._flush = flush
        self._listeners: dict[ResourceKey, WakeListener] = {}
        if not address:
            logger.warning("scale to zero disabled: the address of this pod is unknown")

    async def reconcile(
        self,
        cluster: Cluster,
        body: Manifest,
        stateful_set: Manifest,
        state: RolloutState,
        metadata: ClusterMetadata | None,
    ) -> Outcome:
        """Do what is due; `state` is what is observed, and desired for a running cluster."""
        observation = await self._observe(cluster, stateful_set, state, metadata)
        action = policy.decide(observation)
        if action is Action.SCALE_TO_ZERO:
            assert metadata is not None, "without metadata the idle time is unknown"
            action = await self._stop_brokers(cluster, body, observation, metadata)
        elif action is Action.WAKE:
            await self._set_state(cluster, WAKING)
            await self._report(cluster, body, "WokenUp", policy.wake_reason(observation))
        elif action is Action.FINISH_WAKING:
            await self._stop_listener(cluster)
            await self._set_state(cluster, None)
        if observation.is_wake_requested:
            await self._kube.merge_patch(
                CLUSTERS,
                cluster.namespace,
                cluster.name,
                _annotations_patch({WAKE_ANNOTATION: None}),
            )
        if action is Action.STAY_AT_ZERO:
            return await self._stay_at_zero(cluster, state)
        if action in {Action.WAKE, Action.CONTINUE_WAKING}:
            await self._start_listener(cluster)
            return Outcome(_waking_state(state, cluster))
        seconds = policy.seconds_until_scale_to_zero(observation)
        if seconds is None:
            return Outcome(state)
        return Outcome(state, seconds=max(seconds, RECHECK_SECONDS_MIN))

    async def forget(self, namespace: str, name: str) -> None:
        """Drop the state of a deleted cluster."""
        listener = self._listeners.pop(ResourceKey(CLUSTERS.kind, namespace, name), None)
        if listener is not None:
            await listener.close()

    async def close(self) -> None:
        for key in list(self._listeners):
            await self.forget(key.namespace, key.name)

    # --- observing ----------------------------------------------------------------------------

    async def _observe(
        self,
        cluster: Cluster,
        stateful_set: Manifest,
        state: RolloutState,
        metadata: ClusterMetadata | None,
    ) -> Observation:
        desired = cluster.spec.autoscaling.scale_to_zero
        is_allowed = desired.enabled and bool(self._address)
        annotations = stateful_set["metadata"].get("annotations") or {}
        idle_seconds = None
        if is_allowed and metadata is not None and STATE_ANNOTATION not in annotations:
            idle_seconds = await self._idle_seconds(state, metadata)
        listener = self._listeners.get(_key(cluster))
        return Observation(
            idle_seconds_min=desired.idle_seconds if is_allowed else None,
            idle_seconds=idle_seconds,
            is_stable=state.replicas > 0 and plan(state) is None,
            is_serving=any(
                pod.is_ready and pod.is_serving and not pod.is_terminating for pod in state.pods
            ),
            recorded_state=annotations.get(STATE_ANNOTATION, ""),
            recorded_generation=annotations.get(GENERATION_ANNOTATION, ""),
            generation=cluster.generation,
            is_client_waiting=listener is not None and listener.is_triggered,
            is_wake_requested=WAKE_ANNOTATION in cluster.annotations,
        )

    async def _idle_seconds(self, state: RolloutState, metadata: ClusterMetadata) -> float | None:
        """How long every broker has been reachable without a client connecting."""
        idle_seconds = (await self._collector.collect(metadata)).idle_seconds
        if idle_seconds is None or not state.pods:
            return None
        ready_ms = max(pod.ready_ms for pod in state.pods)
        return min(idle_seconds, (self._clock() - ready_ms) / 1000)

    # --- acting -------------------------------------------------------------------------------

    async def _stop_brokers(
        self, cluster: Cluster, body: Manifest, observation: Observation, metadata: ClusterMetadata
    ) -> Action:
        brokers = list(metadata.view.brokers.values())
        flushes = await asyncio.gather(
            *(self._flush(cluster, each) for each in brokers), return_exceptions=True
        )
        for broker, flushed in zip(brokers, flushes, strict=True):
            if isinstance(flushed, KafscaleError):
                logger.warning(
                    "not scaled to zero: flush failed", broker_id=broker.id, reason=str(flushed)
                )
                return Action.STAY_RUNNING
            if isinstance(flushed, BaseException):
                raise flushed
        await self._set_state(cluster, AT_ZERO)
        message = f"no client was connected for {observation.idle_seconds_min} seconds"
        await self._report(cluster, body, "ScaledToZero", message)
        return Action.STAY_AT_ZERO

    async def _stay_at_zero(self, cluster: Cluster, state: RolloutState) -> Outcome:
        if state.replicas > 0:
            await scale(self._kube, cluster, 0)
        await self._start_listener(cluster)
        return Outcome(
            msgspec.structs.replace(state, replicas=0, desired=0), is_scaled_to_zero=True
        )

    async def _start_listener(self, cluster: Cluster) -> None:
        """Start the wake listener; a restarted operator creates it again."""
        if not self._address:
            return
        key = _key(cluster)
        listener = self._listeners.get(key)
        if listener is None:
            listener = WakeListener(lambda: self._queue.notify(key))
            await listener.open(self._host)
            self._listeners[key] = listener
        await self._kube.apply(services.endpoint_slice(cluster, self._address, listener.port))

    async def _stop_listener(self, cluster: Cluster) -> None:
        await self._kube.delete(
            ENDPOINT_SLICES, cluster.namespace, services.wake_slice_name(cluster)
        )
        await self.forget(cluster.namespace, cluster.name)

    async def _set_state(self, cluster: Cluster, recorded_state: str | None) -> None:
        generation = None if recorded_state is None else str(cluster.generation)
        patch = _annotations_patch(
            {STATE_ANNOTATION: recorded_state, GENERATION_ANNOTATION: generation}
        )
        await self._kube.merge_patch(STATEFUL_SETS, cluster.namespace, names.broker(cluster), patch)

    async def _report(self, cluster: Cluster, body: Manifest, reason: str, message: str) -> None:
        logger.info(
            "cluster scaled to zero" if reason == "ScaledToZero" else "cluster woke up",
            cluster=cluster.name,
            namespace=cluster.namespace,
            reason=message,
        )
        await self._kube.record_event(body, reason, message)


def flush_over_control_plane(platform: Platform, tls: ClientTls | None) -> Flush:
    """Flushes a broker over its control plane, at the name of its pod."""

    async def flush(cluster: Cluster, broker: BrokerInfo) -> int:
        address = names.control_address(cluster.namespace, cluster.name, broker.id, platform)
        async with ControlClient(address, tls, str(broker.id)) as client:
            return len(await client.flush())

    return flush


def _waking_state(state: RolloutState, cluster: Cluster) -> RolloutState:
    """The desired state of a waking cluster; after that, autoscaling decides."""
    if state.desired is None and state.replicas == 0:
        return msgspec.structs.replace(state, desired=cluster.spec.replicas_min)
    return state


def _annotations_patch(annotations: dict[str, str | None]) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}}


def _key(cluster: Cluster) -> ResourceKey:
    return ResourceKey(CLUSTERS.kind, cluster.namespace, cluster.name)
