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
RESERVED: Final = frozenset(
    {"_wal", "_staging", "_probe", "_catalog", "_jobs", "_quarantine", SHARDS_TOPIC}
)

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check(name: str) -> None:
    """Raise `InvalidTopicError` for an invalid topic name.

    >>> check("orders.v2")
    >>> check("..")
    Traceback (most recent call last):
    kafscale.errors.base.InvalidTopicError: topic name '..' is not allowed
    """
    if not name:
        raise InvalidTopicError("topic name is empty")
    if len(name) > LENGTH_MAX:
        raise InvalidTopicError(f"topic name has {len(name)} characters, the limit is {LENGTH_MAX}")
    if not _LEGAL.fullmatch(name):
        raise InvalidTopicError(
            f"topic name {name!r} has characters other than a-z, A-Z, 0-9, ., _, -"
        )
    if name in {".", ".."}:
        raise InvalidTopicError(f"topic name {name!r} is not allowed")
    if name in RESERVED:
        raise InvalidTopicError(f"topic name {name!r} is reserved")


def is_legal(name: str) -> bool:
    """True if `check` accepts the name."""
    try:
        check(name)
    except InvalidTopicError:
        return False
    return True


def check_collision(name: str, existing: Iterable[str]) -> None:
    """Raise `InvalidTopicError` if another name differs only in dots and underscores."""
    if "." not in name and "_" not in name:
        return
    normalized = _normalized(name)
    for other in existing:
        if other != name and len(other) == len(name) and _normalized(other) == normalized:
            raise InvalidTopicError(
                f"topic name {name!r} collides with {other!r}: they differ only in . and _"
            )


def _normalized(name: str) -> str:
    return name.replace(".", "_")
