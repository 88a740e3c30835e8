"""What to do next with the brokers' pods: one at a time, and none that others wait for.

The laws:

1. A broker that serves is drained before it is restarted or removed, and no second one is touched
   while another is not ready: clients never lose more than one broker at a time on our account.
2. A pod that is not ready has nothing to be drained of. It may always be restarted if it is out of
   date, or else a mistake in a template could never be undone.
3. The number of brokers that autoscaling has chosen is left alone, but for the very first time.
4. Who was drained by us and is wanted after all is restarted: a drain ends in no other way.

Pure: everything is seen by the operator anew each time, so it may die at any moment.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

DRAINED: Final = "kafscale.io/drained-for"
"""The annotation of a pod that we have had drained, and why."""
ROLLOUT: Final = "rollout"
SCALE_DOWN: Final = "scale-down"


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's pod as far as it matters here."""

    name: str
    ordinal: int
    uid: str
    revision: str
    is_ready: bool
    is_terminating: bool = False
    is_serving: bool = True
    """Whether its broker is a member of the cluster."""
    drained_for: str = ""
    ready_ms: int = 0
    """Since when it is ready, in milliseconds since 1970."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The brokers' pods, and what is wanted of them."""

    pods: Sequence[Pod]
    replicas: int
    """How many the StatefulSet makes at the moment."""
    wanted: int | None
    """How many there should be; None leaves it to autoscaling."""
    revision: str
    """That of pods which are up to date."""

    @property
    def target(self) -> int:
        """How many there are to be, whoever says so."""
        return self.replicas if self.wanted is None else self.wanted


class Scale(msgspec.Struct, frozen=True):
    """Set the number of pods."""

    replicas: int


class Remove(msgspec.Struct, frozen=True):
    """Drain the last pod, and make the StatefulSet one smaller."""

    pod: Pod


class Restart(msgspec.Struct, frozen=True):
    """Drain a pod, if it serves, and delete it; it comes back up to date."""

    pod: Pod
    reason: str


class Wait(msgspec.Struct, frozen=True):
    """Nothing can be done until something has happened."""

    reason: str


Step = Scale | Remove | Restart | Wait | None
"""What to do next; None where everything is as it should be."""


def plan(view: View) -> Step:
    """The next step."""
    wanted = view.target
    if view.replicas < wanted:
        return Scale(wanted)
    kept = [pod for pod in view.pods if pod.ordinal < wanted]
    surplus = [pod for pod in view.pods if pod.ordinal >= wanted]
    outdated = [pod for pod in kept if pod.revision != view.revision and not pod.is_terminating]
    broken = [pod for pod in outdated if not pod.is_ready]
    if broken:
        return Restart(max(broken, key=_ordinal), "out of date and not ready")
    if (waiting := _waiting(view)) is not None:
        return waiting
    if view.replicas > wanted:
        return Remove(max(surplus, key=_ordinal)) if surplus else Scale(wanted)
    drained = [pod for pod in kept if pod.drained_for]
    for due, reason in ((outdated, "out of date"), (drained, "drained and wanted after all")):
        if due:
            return Restart(max(due, key=_ordinal), reason)
    return None


def _waiting(view: View) -> Wait | None:
    """What stands in the way of touching a pod that serves."""
    if len(view.pods) < view.replicas:
        return Wait(
            f"{view.replicas - len(view.pods)} of {view.replicas} brokers are not there yet"
        )
    for pod in view.pods:
        if pod.is_terminating:
            return Wait(f"{pod.name} is stopping")
        if not pod.is_ready:
            return Wait(f"{pod.name} is not ready")
        if not pod.is_serving:
            return Wait(f"{pod.name} has not joined the cluster yet")
    return None


def _ordinal(pod: Pod) -> int:
    return pod.ordinal
