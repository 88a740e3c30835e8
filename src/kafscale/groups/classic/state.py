"""The states of a classic group, and which may follow which.

    Empty ◀── nobody is left ─── PreparingRebalance ◀── a member comes, goes or changes ── Stable
      │                            ▲   │     ▲                                               ▲
      └────── somebody joins ──────┘   │     │ a member comes, goes, changes or never syncs  │
                                       ▼     │                                               │
      all have joined, or time is up:  CompletingRebalance ── the leader has assigned ───────┘

A group in any of them can be dismissed, and is `Dead` then: it is somebody else's now.
"""

import enum
from collections.abc import Mapping
from typing import Final


class State(enum.StrEnum):
    """Spelled as Kafka's tools show it."""

    EMPTY = "Empty"
    """There are no members; there may be committed offsets."""
    PREPARING = "PreparingRebalance"
    """Members join; the answers wait until all have, or the time is over."""
    COMPLETING = "CompletingRebalance"
    """A generation has begun; its members wait for what the leader assigns."""
    STABLE = "Stable"
    """Everybody has an assignment, and shows itself alive."""
    DEAD = "Dead"
    """The group is not looked after here any more."""


FOLLOWERS: Final[Mapping[State, frozenset[State]]] = {
    State.EMPTY: frozenset({State.PREPARING}),
    State.PREPARING: frozenset({State.COMPLETING, State.EMPTY}),
    State.COMPLETING: frozenset({State.STABLE, State.PREPARING}),
    State.STABLE: frozenset({State.PREPARING}),
    State.DEAD: frozenset(),
}
"""One step at a time; what an event leads to in the end is in the table of transitions."""
