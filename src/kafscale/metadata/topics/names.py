"""Validation of topic names. Pure.

Kafka's rules: 1 to 249 ASCII letters, digits, dots, underscores and hyphens, neither "." nor "..",
and no two names that differ only in dots and underscores, because metrics cannot distinguish them.
In addition, names that the object store uses as key prefixes are reserved, and so is the name that
stands for group shards.
"""

import re
from collections.abc import Iterable
from typing import Final

from kafscale.errors import InvalidTopicError
from kafscale.metadata.schema.model import SHARDS_TOPIC

LENGTH_MAX: Final = 249
INTERNAL: Final = frozenset({SHARDS_TOPIC, "__transaction_state"})
"""The names of Kafka's internal topics, which are no part of transactions, existing or not."""
RESERVED: Final = frozenset(
    {"_wal", "_staging", "_probe", "_catalog", "_jobs", "_quarantine", SHARDS_TOPIC}
)

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check(name: str) -> None:
    """Raise `InvalidTopicError` for an invalid topic name.

    >>> check("orders.v2")
    >>> check("..")
    Traceback (most recent call last):
    kafscale.errors.base.InvalidTopicError: Topic name is invalid: '..' is not allowed
    """
    if reason := _reason(name):
        raise InvalidTopicError(f"Topic name is invalid: {reason}")


def _reason(name: str) -> str:
    """Why a name is invalid, in Kafka's words and checked in its order; empty for a valid name."""
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {LENGTH_MAX}"
    if not _LEGAL.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics,"
            " '.', '_' and '-'"
        )
    return f"'{name}' is reserved" if name in RESERVED else ""


def is_legal(name: str) -> bool:
    """True if `check` accepts the name."""
    return not _reason(name)


def check_collision(name: str, existing: Iterable[str]) -> None:
    """Raise `InvalidTopicError` if another name differs only in dots and underscores."""
    if "." not in name and "_" not in name:
        return
    normalized = _normalized(name)
    for other in existing:
        if other != name and len(other) == len(name) and _normalized(other) == normalized:
            raise InvalidTopicError(f"Topic '{name}' collides with existing topic: {other}")


def _normalized(name: str) -> str:
    return name.replace(".", "_")
