"""Executes the steps of `rollout_plan`: drains brokers, restarts pods, scales the StatefulSet.

Invariant: before a serving pod is restarted or removed, its broker is drained, within the grace
period of the pod. Partitions that it could not transfer in time are taken over as from a failed
broker; no records are lost.
"""

from collections.abc import Sequence
from typing import Final

from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.client import ControlClient
from kafscale.errors import KafscaleError
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.operator import OperatorMetrics
from kafscale.operator.cluster.rollout_plan import (
    DRAINED,
    ROLLOUT,
    SCALE_DOWN,
    Pod,
    Remove,
    Restart,
    RolloutState,
    Scale,
    Step,
    Wait,
    plan,
)
from kafscale.operator.kube.api import PODS, STATEFUL_SETS, Kube, Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests import pods as broker_pods
from kafscale.operator.spec.cluster import Cluster

logger = get_logger(__name__)

CLOSE_SECONDS: Final = 5
"""The part of the grace period that a drained broker needs to stop."""


class RolloutExecutor:
    """Brings the pods of brokers to the desired state, one step at a time."""

    def __init__(
        self, kube: Kube, platform: names.Platform, metrics: OperatorMetrics, tls: ClientTls | None
    ) -> None:
        """`tls` is for the control planes of brokers."""
        self._kube = kube
        self._platform = platform
        self._metrics = metrics
        self._tls = tls

    async def pods(self, cluster: Cluster) -> list[Manifest]:
        labels = names.labels(cluster, names.BROKER_APP)
        return await self._kube.list(PODS, cluster.namespace, labels)

    def observe(
        self,
        stateful_set: Manifest,
        pods: Sequence[Manifest],
        members: set[int] | None,
        desired: int | None,
    ) -> RolloutState:
        """The observed state; `members` are the ids of registered brokers, None if unknown."""
        return RolloutState(
            pods=[_pod(pod, members) for pod in pods],
            replicas=stateful_set["spec"].get("replicas", 0),
            desired=desired,
            revision=stateful_set.get("status", {}).get("updateRevision", ""),
        )

    async def step(self, cluster: Cluster, body: Manifest, state: RolloutState) -> Step:
        """Execute the next step, and return it."""
        step = plan(state)
        match step:
            case Scale(replicas=replicas):
                await scale(self._kube, cluster, replicas)
                await self._kube.record_event(body, "Scaled", f"to {replicas} brokers")
            case Remove(pod=pod):
                await self.drain(
                    cluster, body, pod, SCALE_DOWN, has_other_brokers=state.replicas > 1
                )
                await scale(self._kube, cluster, state.replicas - 1)
                await self._kube.record_event(body, "Scaled", f"to {state.replicas - 1} brokers")
            case Restart(pod=pod, reason=reason):
                if pod.is_ready and not pod.drained_for:
                    await self.drain(
                        cluster, body, pod, ROLLOUT, has_other_brokers=len(state.pods) > 1
                    )
                await self._kube.delete(PODS, cluster.namespace, pod.name, uid=pod.uid)
                self._metrics.rollouts += 1
                await self._kube.record_event(body, "Restarted", f"{pod.name}: {reason}")
            case Wait() | None:
                pass
        return step

    async def drain(
        self, cluster: Cluster, body: Manifest, pod: Pod, reason: str, *, has_other_brokers: bool
    ) -> None:
        """Drain a broker; a single broker flushes its partitions to segments instead."""
        mark = {"metadata": {"annotations": {DRAINED: reason}, "uid": pod.uid}}
        await self._kube.merge_patch(PODS, cluster.namespace, pod.name, mark)
        seconds = cluster.spec.brokers.termination_grace_period_seconds - CLOSE_SECONDS
        try:
            async with ControlClient(self.address(cluster, pod.ordinal), self._tls) as broker:
                if has_other_brokers:
                    response = await broker.drain(reason=reason, deadline_seconds=seconds)
                    result = f"{len(response.drained)} partitions transferred"
                    if response.pending:
                        result += f", {len(response.pending)} left for takeover"
                else:
                    result = f"{len(await broker.flush())} partitions flushed to segments"
        except KafscaleError as error:
            self._metrics.drains["error"] += 1
            logger.warning("broker not drained", pod=pod.name, reason=str(error))
            await self._kube.record_event(
                body, "DrainFailed", f"{pod.name} ({reason}): {error}", warning=True
            )
        else:
            self._metrics.drains["success"] += 1
            logger.info("broker drained", pod=pod.name, reason=reason, result=result)
            await self._kube.record_event(body, "Drained", f"{pod.name} ({reason}): {result}")

    def address(self, cluster: Cluster, ordinal: int) -> str:
        """The address of a broker's control plane."""
        return names.control_address(cluster.namespace, cluster.name, ordinal, self._platform)


async def scale(kube: Kube, cluster: Cluster, replicas: int) -> None:
    """Set the replicas of the brokers' StatefulSet."""
    await kube.merge_patch(
        STATEFUL_SETS,
        cluster.namespace,
        names.broker(cluster),
        {"spec": {"replicas": replicas}},
        subresource="scale",
    )


def _pod(pod: Manifest, members: set[int] | None) -> Pod:
    metadata = pod["metadata"]
    ordinal = broker_pods.ordinal(pod)
    return Pod(
        name=metadata["name"],
        ordinal=ordinal,
        uid=metadata["uid"],
        revision=broker_pods.revision(pod),
        is_ready=broker_pods.is_ready(pod),
        is_terminating=broker_pods.is_terminating(pod),
        is_serving=members is None or ordinal in members,
        drained_for=(metadata.get("annotations") or {}).get(DRAINED, ""),
        ready_ms=broker_pods.ready_ms(pod),
    )
