"""When a cluster may sleep, and when it has to wake: the decision, from what is seen.

    awake ── nobody came for idleSeconds, and nothing is being changed ──▶ asleep
    asleep ── a client, a change of the spec, or somebody's wish ──▶ waking
    waking ── a broker serves ──▶ awake

The laws: a cluster falls asleep only when every broker has said, lately, that nobody was there;
what is not known keeps it awake. Where it stands is a mark on the StatefulSet, so that an operator
may die anywhere, and how long nobody was there is what brokers say, not what anybody remembers.

Pure. Doing it is left to `sleeper`.
"""

from enum import Enum, auto
from typing import Final

import msgspec

MARK: Final = "kafscale.io/sleep"
"""The annotation of a StatefulSet whose brokers sleep or wake."""
ASLEEP: Final = "asleep"
WAKING: Final = "waking"
MARK_GENERATION: Final = "kafscale.io/sleep-generation"
"""The annotation that says which generation of its resource a cluster fell asleep with."""
WAKE: Final = "kafscale.io/wake"
"""The annotation by which somebody wakes a cluster; the operator takes it away again."""


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster as far as it matters here."""

    idle_seconds_min: int | None
    """After how long with nobody there it may sleep; None if it may not."""
    idle_seconds: float | None = None
    """How long nobody was there; None if that is not known."""
    is_settled: bool = False
    """Whether all brokers serve, and nothing is being changed."""
    is_serving: bool = False
    """Whether at least one broker serves."""
    mark: str = ""
    mark_generation: str = ""
    generation: int = 0
    is_called: bool = False
    """Whether a client has come while it slept."""
    is_wished_for: bool = False
    """Whether somebody has asked for it to be awake."""


class Act(Enum):
    """What to do."""

    STAY_AWAKE = auto()
    FALL_ASLEEP = auto()
    SLEEP_ON = auto()
    WAKE = auto()
    GO_ON_WAKING = auto()
    BE_AWAKE = auto()


def decide(sight: Sight) -> Act:
    """What is to be done now."""
    if sight.mark == WAKING:
        return Act.BE_AWAKE if sight.is_serving else Act.GO_ON_WAKING
    if sight.mark == ASLEEP:
        return Act.WAKE if waking_reason(sight) else Act.SLEEP_ON
    is_tired = seconds_to_sleep(sight) == 0 and sight.is_settled and not sight.is_wished_for
    return Act.FALL_ASLEEP if is_tired else Act.STAY_AWAKE


def waking_reason(sight: Sight) -> str:
    """Why a cluster that sleeps has to wake; nothing if it does not."""
    if sight.is_called:
        return "a client has come"
    if sight.is_wished_for:
        return f"somebody has asked for it ({WAKE})"
    if sight.idle_seconds_min is None:
        return "it may sleep no longer"
    if sight.mark_generation != str(sight.generation):
        return "its resource has been changed"
    return ""


def seconds_to_sleep(sight: Sight) -> float | None:
    """How long until a cluster may sleep if nobody comes; None if that cannot be said.

    >>> seconds_to_sleep(Sight(idle_seconds_min=60, idle_seconds=45))
    15
    """
    if sight.idle_seconds_min is None or sight.idle_seconds is None:
        return None
    return max(0, sight.idle_seconds_min - sight.idle_seconds)
