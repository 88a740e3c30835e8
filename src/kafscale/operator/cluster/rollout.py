"""Doing what `rollout` plans: draining brokers, restarting pods, setting how many there are.

The law: before a pod is touched that serves, its broker hands over what it owns, as long as the
grace period of its pod; what it could not hand over in time is taken over from it as from a dead
one, with nothing lost.
"""

from collections.abc import Sequence
from typing import Final

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
    Scale,
    Step,
    View,
    Wait,
    plan,
)
from kafscale.operator.kube.api import Kube, Manifest
from kafscale.operator.kube.kinds import PODS, STATEFUL_SETS
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import pods as brokers_pods
from kafscale.operator.spec.cluster import Cluster

log = get_logger(__name__)

CLOSE_SECONDS: Final = 5
"""What a broker needs of its grace period to stop, once it owns nothing."""


class Roller:
    """Brings the pods of brokers to what is wanted, one step at a time."""

    def __init__(self, kube: Kube, platform: names.Platform, metrics: OperatorMetrics) -> None:
        self._kube = kube
        self._platform = platform
        self._metrics = metrics

    async def pods(self, cluster: Cluster) -> list[Manifest]:
        labels = names.labels(cluster, names.BROKER_APP)
        return await self._kube.list(PODS, cluster.namespace, labels)

    def view(
        self,
        stateful_set: Manifest,
        pods: Sequence[Manifest],
        members: set[int] | None,
        wanted: int | None,
    ) -> View:
        """What there is; `members` are the ids of registered brokers, None if nobody knows."""
        return View(
            pods=[_seen(pod, members) for pod in pods],
            replicas=stateful_set["spec"].get("replicas", 0),
            wanted=wanted,
            revision=stateful_set.get("status", {}).get("updateRevision", ""),
        )

    async def step(self, cluster: Cluster, body: Manifest, view: View) -> Step:
        """Do what is next, and tell what it was."""
        step = plan(view)
        match step:
            case Scale(replicas=replicas):
                await scale(self._kube, cluster, replicas)
                await self._kube.tell(body, "Scaled", f"to {replicas} brokers")
            case Remove(pod=pod):
                await self.drain(cluster, body, pod, SCALE_DOWN, has_company=view.replicas > 1)
                await scale(self._kube, cluster, view.replicas - 1)
                await self._kube.tell(body, "Scaled", f"to {view.replicas - 1} brokers")
            case Restart(pod=pod, reason=reason):
                if pod.is_ready and not pod.drained_for:
                    await self.drain(cluster, body, pod, ROLLOUT, has_company=len(view.pods) > 1)
                await self._kube.delete(PODS, cluster.namespace, pod.name, uid=pod.uid)
                self._metrics.rollouts += 1
                await self._kube.tell(body, "Restarted", f"{pod.name}: {reason}")
            case Wait() | None:
                pass
        return step

    async def drain(
        self, cluster: Cluster, body: Manifest, pod: Pod, why: str, *, has_company: bool
    ) -> None:
        """Have a broker hand over what it owns; without company it makes segments of it."""
        mark = {"metadata": {"annotations": {DRAINED: why}, "uid": pod.uid}}
        await self._kube.merge(PODS, cluster.namespace, pod.name, mark)
        seconds = cluster.spec.brokers.termination_grace_period_seconds - CLOSE_SECONDS
        try:
            async with ControlClient(self.address(cluster, pod.name)) as broker:
                if has_company:
                    answer = await broker.drain(reason=why, deadline_seconds=seconds)
                    done = f"{len(answer.drained)} partitions handed over"
                    if answer.pending:
                        done += f", {len(answer.pending)} left to be taken over"
                else:
                    done = f"segments made of {len(await broker.flush())} partitions"
        except KafscaleError as error:
            self._metrics.drains["error"] += 1
            log.warning("broker not drained", pod=pod.name, reason=str(error))
            await self._kube.tell(
                body, "DrainFailed", f"{pod.name}, for a {why}: {error}", warning=True
            )
        else:
            self._metrics.drains["success"] += 1
            log.info("broker drained", pod=pod.name, reason=why, result=done)
            await self._kube.tell(body, "Drained", f"{pod.name}, for a {why}: {done}")

    def address(self, cluster: Cluster, pod: str) -> str:
        """Where the control plane of a broker is."""
        host = names.pod_host(
            pod, names.broker_headless(cluster), cluster.namespace, self._platform.cluster_domain
        )
        return f"{host}:{names.METRICS_PORT}"


async def scale(kube: Kube, cluster: Cluster, replicas: int) -> None:
    """Set how many pods the StatefulSet of the brokers makes."""
    await kube.merge(
        STATEFUL_SETS,
        cluster.namespace,
        names.broker(cluster),
        {"spec": {"replicas": replicas}},
        subresource="scale",
    )


def _seen(pod: Manifest, members: set[int] | None) -> Pod:
    metadata = pod["metadata"]
    ordinal = brokers_pods.ordinal(pod)
    return Pod(
        name=metadata["name"],
        ordinal=ordinal,
        uid=metadata["uid"],
        revision=brokers_pods.revision(pod),
        is_ready=brokers_pods.is_ready(pod),
        is_terminating=brokers_pods.is_terminating(pod),
        is_serving=members is None or ordinal in members,
        drained_for=(metadata.get("annotations") or {}).get(DRAINED, ""),
        ready_ms=brokers_pods.ready_ms(pod),
    )
