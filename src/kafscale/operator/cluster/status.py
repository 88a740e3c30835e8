"""What is told about a cluster: its phase and its status, from what was found while it was kept.

Pure. The law: a cluster is Ready only if clients can use all of it: every broker that is wanted
serves, and nothing that stands in the way of records being kept is known.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kafscale.operator.cluster.rollout_plan import Step, Wait
from kafscale.operator.conditions import TRUE, Condition, bad, ok, written
from kafscale.operator.spec.cluster import Cluster
from kafscale.operator.spec.status import ClusterStatus, EtcdStatus, SnapshotStatus

PENDING: Final = "Pending"
PROGRESSING: Final = "Progressing"
READY: Final = "Ready"
DEGRADED: Final = "Degraded"
SLEEPING: Final = "Sleeping"

_NEEDED: Final = frozenset({"EtcdReady", "BucketReady", "ConfigValid", "BrokersReady"})
"""The conditions without which nothing works; the others are worth knowing."""


class Found(msgspec.Struct, kw_only=True):
    """What was found; what was not looked at stays None."""

    conditions: list[Condition] = []
    replicas: int | None = None
    """How many brokers are wanted at the moment."""
    ready_brokers: int | None = None
    broker_count: int | None = None
    topic_count: int | None = None
    bootstrap_servers: str = ""
    etcd: EtcdStatus | None = None
    snapshot: SnapshotStatus | None = None
    step: Step = None
    """What was done to pods, or what is waited for."""
    is_asleep: bool = False


def brokers_condition(found: Found) -> Condition | None:
    """Whether all brokers that are wanted serve."""
    if found.replicas is None:
        return None
    ready = found.ready_brokers or 0
    told = f"{ready} of {found.replicas} brokers serve"
    if found.is_asleep:
        return ok("BrokersReady", "Asleep", "a client that connects wakes them")
    if ready < found.replicas:
        waiting = f"; {found.step.reason}" if isinstance(found.step, Wait) else ""
        return bad("BrokersReady", "NotAllReady", told + waiting)
    return ok("BrokersReady", "AllReady", told)


def phase(conditions: Sequence[Condition], found: Found, before: str) -> str:
    """What the cluster is about, in one word."""
    missing = _NEEDED - {each.type for each in conditions if each.status == TRUE}
    if found.is_asleep and not missing:
        return SLEEPING
    if not missing:
        return READY if found.step is None else PROGRESSING
    if before in {"", PENDING, PROGRESSING}:
        return PENDING if found.replicas is None else PROGRESSING
    return PROGRESSING if missing == {"BrokersReady"} and found.step is not None else DEGRADED


def status(cluster: Cluster, found: Found, now: str) -> dict[str, Any]:
    """The status of a cluster, as its resource has it."""
    conditions = list(found.conditions)
    if (brokers := brokers_condition(found)) is not None:
        conditions.append(brokers)
    word = phase(conditions, found, cluster.status.get("phase", ""))
    conditions.append(_ready(conditions, word))
    told = ClusterStatus(
        phase=word,
        observed_generation=cluster.generation,
        broker_count=found.broker_count,
        ready_brokers=found.ready_brokers,
        topic_count=found.topic_count,
        bootstrap_servers=found.bootstrap_servers,
        etcd=found.etcd,
        snapshot=found.snapshot,
    )
    result: dict[str, Any] = msgspec.to_builtins(told)
    before = cluster.status.get("conditions") or []
    result["conditions"] = written(conditions, before, now, cluster.generation)
    return result


def changed(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> list[Condition]:
    """The conditions whose status is another one, or which are new and not as they should be."""
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
        if each.type in _NEEDED and each.status != TRUE
    ]
    return bad("Ready", word, "; ".join(reasons))
