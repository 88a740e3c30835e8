"""Plans the next step of a rollout of the brokers' pods: one pod at a time. Pure.

Invariants:

1. A serving broker is drained before it is restarted or removed, and no other one is touched while
   any is not ready: a rollout never takes more than one broker away from clients at a time.
2. A pod that is not ready has nothing to drain. If it is outdated it may always be restarted;
   otherwise a mistake in a template could never be corrected.
3. The number of brokers that autoscaling has chosen is left alone, except at creation.
4. A broker that was drained and is desired again is restarted, because a drain cannot be undone.

Everything is observed again each time, so the operator may stop at any moment.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

DRAINED: Final = "kafscale.io/drained-for"
"""The annotation of a pod that the operator has drained, with the reason."""
ROLLOUT: Final = "rollout"
SCALE_DOWN: Final = "scale-down"


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """The relevant fields of a broker's pod."""

    name: str
    ordinal: int
    uid: str
    revision: str
    is_ready: bool
    is_terminating: bool = False
    is_serving: bool = True
    """Whether its broker is registered."""
    drained_for: str = ""
    ready_ms: int = 0
    """Since when it is ready, in milliseconds since 1970."""


class RolloutState(msgspec.Struct, frozen=True, kw_only=True):
    """The brokers' pods, and their desired number and revision."""

    pods: Sequence[Pod]
    replicas: int
    """The current replicas of the StatefulSet."""
    desired: int | None
    """The desired number; None leaves it to autoscaling."""
    revision: str
    """The current revision of the pod template."""

    @property
    def target(self) -> int:
        """The number of brokers to reach."""
        return self.replicas if self.desired is None else self.desired


class Scale(msgspec.Struct, frozen=True):
    """Set the replicas."""

    replicas: int


class Remove(msgspec.Struct, frozen=True):
    """Drain the last pod, and scale down by one."""

    pod: Pod


class Restart(msgspec.Struct, frozen=True):
    """Drain a pod if it serves, and delete it; it is created again up to date."""

    pod: Pod
    reason: str


class Wait(msgspec.Struct, frozen=True):
    """Nothing can be done before something else has happened."""

    reason: str


Step = Scale | Remove | Restart | Wait | None
"""The next step; None if the desired state is reached."""


def plan(state: RolloutState) -> Step:
    """The next step."""
    desired = state.target
    if state.replicas < desired:
        return Scale(desired)
    desired_pods = [pod for pod in state.pods if pod.ordinal < desired]
    surplus_pods = [pod for pod in state.pods if pod.ordinal >= desired]
    outdated = [
        pod for pod in desired_pods if pod.revision != state.revision and not pod.is_terminating
    ]
    broken = [pod for pod in outdated if not pod.is_ready]
    if broken:
        return Restart(max(broken, key=_ordinal), "out of date and not ready")
    if (waiting := _waiting(state)) is not None:
        return waiting
    if state.replicas > desired:
        return Remove(max(surplus_pods, key=_ordinal)) if surplus_pods else Scale(desired)
    drained = [pod for pod in desired_pods if pod.drained_for]
    for due, reason in ((outdated, "out of date"), (drained, "drained, but desired again")):
        if due:
            return Restart(max(due, key=_ordinal), reason)
    return None


def _waiting(state: RolloutState) -> Wait | None:
    """Why no serving pod may be touched now."""
    if len(state.pods) < state.replicas:
        return Wait(
            f"{state.replicas - len(state.pods)} of {state.replicas} brokers do not exist yet"
        )
    for pod in state.pods:
        if pod.is_terminating:
            return Wait(f"{pod.name} is stopping")
        if not pod.is_ready:
            return Wait(f"{pod.name} is not ready")
        if not pod.is_serving:
            return Wait(f"{pod.name} has not joined the cluster yet")
    return None


def _ordinal(pod: Pod) -> int:
    return pod.ordinal
