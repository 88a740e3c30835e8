"""Which names a topic may have. Pure.

The law is Kafka's: 1 to 249 of the letters, digits, dots, underscores and hyphens of ASCII, but
neither "." nor ".."; and no two topics whose names differ only by dots and underscores, for Kafka's
tools cannot tell them apart in metrics. Ours on top: a name is the first part of the keys of the
topic's objects, so those that the object store uses itself are taken; and one stands for the shards
of groups.
"""

import re
from collections.abc import Iterable
from typing import Final

from kafscale.errors import InvalidTopicError
from kafscale.metadata.cluster.group_shards import SHARDS_TOPIC

LENGTH_MAX: Final = 249
RESERVED: Final = frozenset({"_wal", "_staging", "_probe", "_catalog", "_jobs", SHARDS_TOPIC})

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check(name: str) -> None:
    """Raise `InvalidTopicError` unless a topic may be called so.

    >>> check("orders.v2")
    >>> check("..")
    Traceback (most recent call last):
    kafscale.errors.base.InvalidTopicError: a topic is not called '..'
    """
    if not name:
        raise InvalidTopicError("a topic's name is never empty")
    if len(name) > LENGTH_MAX:
        raise InvalidTopicError(f"a topic's name of {len(name)} characters, above {LENGTH_MAX}")
    if not _LEGAL.fullmatch(name):
        raise InvalidTopicError(f"{name!r} has characters other than a-z, A-Z, 0-9, ., _, -")
    if name in {".", ".."}:
        raise InvalidTopicError(f"a topic is not called {name!r}")
    if name in RESERVED:
        raise InvalidTopicError(f"{name!r} is reserved")


def is_legal(name: str) -> bool:
    """Whether `check` would let it pass."""
    try:
        check(name)
    except InvalidTopicError:
        return False
    return True


def check_collision(name: str, existing: Iterable[str]) -> None:
    """Raise `InvalidTopicError` if another topic's name differs by dots and underscores only."""
    if "." not in name and "_" not in name:
        return
    flat = _flat(name)
    for other in existing:
        if other != name and len(other) == len(name) and _flat(other) == flat:
            raise InvalidTopicError(f"{name!r} collides with {other!r}: . and _ are alike")


def _flat(name: str) -> str:
    return name.replace(".", "_")
