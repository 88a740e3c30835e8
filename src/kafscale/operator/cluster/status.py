"""The status of a cluster's resource, built from what was observed. Pure.

Invariant: a cluster is Ready only if clients can use all of it: every desired broker serves, and
nothing is known that prevents records from being stored.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kafscale.config.sections.storage import Storage
from kafscale.operator.cluster.rollout_plan import Step, Wait
from kafscale.operator.manifests.settings_tree import value_at
from kafscale.operator.spec.cluster import Cluster
from kafscale.operator.spec.status import (
    TRUE,
    ClusterStatus,
    Condition,
    EtcdStatus,
    SnapshotStatus,
    as_manifest,
    bad,
    ok,
    to_status,
)
from kafscale.text.units import MIB, parse_size

PENDING: Final = "Pending"
PROGRESSING: Final = "Progressing"
READY: Final = "Ready"
DEGRADED: Final = "Degraded"
SLEEPING: Final = "Sleeping"

_REQUIRED: Final = frozenset({"EtcdReady", "BucketReady", "ConfigValid", "BrokersReady"})
"""The conditions without which a cluster does not work; the others are informational."""

FITS: Final = "MemoryFits"
PROCESS_BYTES: Final = 200 * MIB
"""What a broker needs besides: measured at rest, and rounded up."""
TAIL_BYTES: Final = Storage().tail_bytes_max
"""The default of `storage.maxTailBytes`: records that are not in segments yet."""


class ObservedCluster(msgspec.Struct, kw_only=True):
    """What a reconcile observed; what it did not check stays None."""

    conditions: list[Condition] = []
    replicas: int | None = None
    """The number of brokers that is desired now."""
    ready_brokers: int | None = None
    broker_count: int | None = None
    topic_count: int | None = None
    bootstrap_servers: str = ""
    etcd: EtcdStatus | None = None
    snapshot: SnapshotStatus | None = None
    step: Step = None
    """What the rollout did, or what it waits for."""
    is_scaled_to_zero: bool = False


def brokers_condition(observed: ObservedCluster) -> Condition | None:
    """Whether all desired brokers serve."""
    if observed.replicas is None:
        return None
    ready = observed.ready_brokers or 0
    message = f"{ready} of {observed.replicas} brokers serve"
    if observed.is_scaled_to_zero:
        return ok("BrokersReady", "ScaledToZero", "brokers start when a client connects")
    if ready < observed.replicas:
        waiting = f"; {observed.step.reason}" if isinstance(observed.step, Wait) else ""
        return bad("BrokersReady", "NotAllReady", message + waiting)
    return ok("BrokersReady", "AllReady", message)


def phase(conditions: Sequence[Condition], observed: ObservedCluster, before: str) -> str:
    """The state of the cluster in one word."""
    missing = _REQUIRED - {each.type for each in conditions if each.status == TRUE}
    if observed.is_scaled_to_zero and not missing:
        return SLEEPING
    if not missing:
        return READY if observed.step is None else PROGRESSING
    if before in {"", PENDING, PROGRESSING}:
        return PENDING if observed.replicas is None else PROGRESSING
    return PROGRESSING if missing == {"BrokersReady"} and observed.step is not None else DEGRADED


def status(cluster: Cluster, observed: ObservedCluster, now: str) -> dict[str, Any]:
    """The status of a cluster, as its resource has it."""
    conditions = list(observed.conditions)
    if (brokers := brokers_condition(observed)) is not None:
        conditions.append(brokers)
    word = phase(conditions, observed, cluster.status.get("phase", ""))
    conditions.append(_ready(conditions, word))
    before = {
        (each["type"], each["status"]): each["lastTransitionTime"]
        for each in cluster.status.get("conditions") or []
    }
    reported = ClusterStatus(
        phase=word,
        observed_generation=cluster.generation,
        broker_count=observed.broker_count,
        ready_brokers=observed.ready_brokers,
        topic_count=observed.topic_count,
        bootstrap_servers=observed.bootstrap_servers,
        etcd=observed.etcd,
        snapshot=observed.snapshot,
        conditions=to_status(conditions, before, now, cluster.generation),
    )
    return as_manifest(reported)


def changed(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> list[Condition]:
    """The conditions whose status changed, or which are new and not True."""
    old = {each["type"]: each["status"] for each in before}
    return [
        Condition(each["type"], each["status"], each["reason"], each["message"])
        for each in after
        if old.get(each["type"], TRUE) != each["status"]
    ]


def _ready(conditions: Sequence[Condition], word: str) -> Condition:
    if word in {READY, SLEEPING}:
        return ok("Ready", word)
    reasons = [
        f"{each.type}: {each.message or each.reason}"
        for each in conditions
        if each.type in _REQUIRED and each.status != TRUE
    ]
    return bad("Ready", word, "; ".join(reasons))


def memory_condition(cluster: Cluster) -> Condition:
    """Whether the configured cache fits into the configured memory.

    A full cache is normal. If it exceeds the memory target of autoscaling, brokers are added for no
    reason, up to the maximum; if it exceeds the memory limit of the container, brokers are killed.
    Both are reported in advance.
    """
    spec = cluster.spec
    tail_setting = value_at(spec.config.settings, "storage.maxTailBytes")
    tail_bytes = TAIL_BYTES if tail_setting is None else parse_size(str(tail_setting))
    needed = parse_size(spec.config.cache_size) + tail_bytes + PROCESS_BYTES
    limit = parse_size(spec.brokers.resources.limits.memory)
    estimate = f"a broker with a full cache needs about {needed // MIB} MiB"
    if needed > limit:
        return bad(
            FITS,
            "AboveLimit",
            f"{estimate}, and is killed at {limit // MIB} MiB: raise"
            " brokers.resources.limits.memory or lower config.cacheSize",
        )
    percent = spec.autoscaling.target_memory_utilization
    target_bytes = parse_size(spec.brokers.resources.requests.memory) * percent // 100
    if spec.autoscaling.enabled and needed > target_bytes:
        return bad(
            FITS,
            "AboveAutoscalingTarget",
            f"{estimate}, and autoscaling adds brokers above {target_bytes // MIB} MiB: raise"
            " brokers.resources.requests.memory or autoscaling.targetMemoryUtilization, or lower"
            " config.cacheSize",
        )
    return ok(FITS, "Fits", estimate)
