"""Decides when a cluster scales to zero and when it wakes up. Pure.

    running ── no client for idleSeconds, and no change in progress ──▶ at zero
    at zero ── a client connects, the spec changes, or a wake request ──▶ waking
    waking ── a broker serves ──▶ running

Invariants: a cluster scales to zero only if every broker reported recently that no client was
connected; if anything is unknown, it keeps running. The state is an annotation of the StatefulSet,
so the operator may stop at any moment. The idle time is what brokers report, not what the operator
remembers.
"""

from enum import Enum, auto
from typing import Final

import msgspec

STATE_ANNOTATION: Final = "kafscale.io/scale-to-zero-state"
"""Set on the StatefulSet while the brokers are at zero or waking up."""
AT_ZERO: Final = "at-zero"
WAKING: Final = "waking"
GENERATION_ANNOTATION: Final = "kafscale.io/scale-to-zero-generation"
"""The generation of the resource with which the cluster was scaled to zero."""
WAKE_ANNOTATION: Final = "kafscale.io/wake"
"""Set on the resource by a user to wake the cluster; the operator removes it."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The relevant state of a cluster."""

    idle_seconds_min: int | None
    """The idle time after which it may scale to zero; None if it may not."""
    idle_seconds: float | None = None
    """How long no client has been connected; None if unknown."""
    is_stable: bool = False
    """Whether all brokers serve and no change is in progress."""
    is_serving: bool = False
    """Whether at least one broker serves."""
    recorded_state: str = ""
    recorded_generation: str = ""
    generation: int = 0
    is_client_waiting: bool = False
    """Whether a client has connected to the wake listener."""
    is_wake_requested: bool = False
    """Whether the wake annotation is set."""


class Action(Enum):
    """The action to take."""

    STAY_RUNNING = auto()
    SCALE_TO_ZERO = auto()
    STAY_AT_ZERO = auto()
    WAKE = auto()
    CONTINUE_WAKING = auto()
    FINISH_WAKING = auto()


def decide(observation: Observation) -> Action:
    """The action to take now."""
    if observation.recorded_state == WAKING:
        return Action.FINISH_WAKING if observation.is_serving else Action.CONTINUE_WAKING
    if observation.recorded_state == AT_ZERO:
        return Action.WAKE if wake_reason(observation) else Action.STAY_AT_ZERO
    is_due = (
        seconds_until_scale_to_zero(observation) == 0
        and observation.is_stable
        and not observation.is_wake_requested
    )
    return Action.SCALE_TO_ZERO if is_due else Action.STAY_RUNNING


def wake_reason(observation: Observation) -> str:
    """Why a cluster at zero has to wake up; empty if it does not."""
    if observation.is_client_waiting:
        return "a client connected"
    if observation.is_wake_requested:
        return f"requested by the annotation {WAKE_ANNOTATION}"
    if observation.idle_seconds_min is None:
        return "scale to zero was disabled"
    if observation.recorded_generation != str(observation.generation):
        return "the resource was changed"
    return ""


def seconds_until_scale_to_zero(observation: Observation) -> float | None:
    """The time until an idle cluster may scale to zero; None if unknown.

    >>> seconds_until_scale_to_zero(Observation(idle_seconds_min=60, idle_seconds=45))
    15
    """
    if observation.idle_seconds_min is None or observation.idle_seconds is None:
        return None
    return max(0, observation.idle_seconds_min - observation.idle_seconds)
