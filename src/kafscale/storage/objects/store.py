"""What an object store is: the few verbs that all of Kafscale's durability rests on.

The laws that every implementation keeps, and that one test body checks for all of them:

* A PUT is all or nothing: nobody ever sees an object half-written. An object has at least one byte.
* A PUT with `create` succeeds for exactly one of any number of writers of a key; the others get
  `ObjectExistsError`. Fencing and the order of the write-ahead log stand on this.
* A PUT that returned is durable, and every later read and listing sees it.
* A PUT that failed with `StoreUnavailableError`, or was cancelled, may have happened or may still
  happen; tried again, it may meet its own first success as `ObjectExistsError`. Whoever is in
  doubt reads the object back and compares.
* A failure is a `KafscaleError`: `StoreUnavailableError` if trying again may help.

What is inside of an object, and which keys mean what, is left to those who write them.
"""

import re
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

import msgspec

from kafscale.errors import OperatingError
from kafscale.records.checksum import Buffer

KEY_BYTES_MAX: Final = 1024
"""The longest key that S3 takes."""

PAGE_KEYS: Final = 1000
"""How many objects one chunk of a listing has at most, and how many keys S3 deletes at once."""

_KEY: Final = re.compile(r"(?!\.)[\w.-]+(?:/(?!\.\.?(?:/|$))[\w.-]+)*", re.ASCII)


class ObjectInfo(msgspec.Struct, frozen=True, gc=False):
    """What a store says about an object without opening it."""

    key: str
    size_bytes: int
    modified_ms: int


class ObjectStore(Protocol):
    """Immutable bytes under keys."""

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        """Store `parts`, one after the other, as one object; replace another only if not `create`.

        The parts may not change until this returns.
        """

    async def get(self, key: str) -> memoryview: ...

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        """The bytes from `start` up to `stop`; fewer, or none, only where the object ends."""

    async def get_suffix(self, key: str, length: int) -> memoryview:
        """The last `length` bytes; the whole object if it is shorter."""

    async def head(self, key: str) -> ObjectInfo: ...

    def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """Every object below `prefix`, which ends with a slash, in chunks and ascending by key."""

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; those that are not there are gone already."""

    async def close(self) -> None: ...


def is_key(text: str) -> bool:
    """Whether every store can hold an object under this key, and none will take it for a path.

    >>> is_key("default/orders/0/segment-00000000000000000000.kfs")
    True
    >>> [is_key(text) for text in ("", "/a", "a/", "a//b", "a/../b", ".a", "a b")]
    [False, False, False, False, False, False, False]
    """
    return _KEY.fullmatch(text) is not None and len(text) <= KEY_BYTES_MAX


def check_key(key: str) -> None:
    """Refuse what is not a key, in optimised builds too: it may have come with a request."""
    if not is_key(key):
        raise OperatingError(f"{key[:KEY_BYTES_MAX]!r} cannot be the key of an object")


def check_prefix(prefix: str) -> None:
    if not (prefix.endswith("/") and is_key(prefix[:-1])):
        raise OperatingError(f"{prefix[:KEY_BYTES_MAX]!r} cannot be the prefix of a listing")
