"""Conditions: what is true of a resource, since when, and why.

The law: `lastTransitionTime` changes with the status and with nothing else.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"


class Condition(msgspec.Struct, frozen=True):
    """One thing that is true, false or not known."""

    type: str
    status: str
    reason: str
    """A word in CamelCase, for programs."""
    message: str = ""
    """A sentence, for people: what it is, and what to do."""


def ok(type_: str, reason: str, message: str = "") -> Condition:
    return Condition(type_, TRUE, reason, message)


def bad(type_: str, reason: str, message: str) -> Condition:
    return Condition(type_, FALSE, reason, message)


def unknown(type_: str, reason: str, message: str = "") -> Condition:
    return Condition(type_, UNKNOWN, reason, message)


def written(
    conditions: Iterable[Condition], before: Sequence[dict[str, Any]], now: str, generation: int
) -> list[dict[str, Any]]:
    """Conditions as a status has them, by type; `before` is what it had, `now` in RFC 3339."""
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
