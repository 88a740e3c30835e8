"""Conditions of a resource's status.

Invariant: `lastTransitionTime` changes only with the status.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"


class Condition(msgspec.Struct, frozen=True):
    """One fact that is true, false or unknown."""

    type: str
    status: str
    reason: str
    """A CamelCase word, for programs."""
    message: str = ""
    """A sentence for people: what it is, and what to do."""


def ok(type_: str, reason: str, message: str = "") -> Condition:
    return Condition(type_, TRUE, reason, message)


def bad(type_: str, reason: str, message: str) -> Condition:
    return Condition(type_, FALSE, reason, message)


def unknown(type_: str, reason: str, message: str = "") -> Condition:
    return Condition(type_, UNKNOWN, reason, message)


def to_status(
    conditions: Iterable[Condition], before: Sequence[dict[str, Any]], now: str, generation: int
) -> list[dict[str, Any]]:
    """Conditions as a status has them, by type; `before` is the former list, `now` in RFC 3339."""
    old = {each["type"]: each for each in before}
    result = []
    for each in sorted(conditions, key=lambda one: one.type):
        was = old.get(each.type)
        since = was["lastTransitionTime"] if was and was["status"] == each.status else now
        result.append(
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "lastTransitionTime": since,
                "observedGeneration": generation,
            }
        )
    return result
