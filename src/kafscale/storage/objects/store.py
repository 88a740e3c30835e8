"""The `ObjectStore` protocol: the operations that Kafscale's durability depends on.

Contract of every implementation, checked by one shared test suite:

* A PUT is atomic: readers never see a partial object. An object has at least one byte.
* Of concurrent PUTs of one key with `create`, exactly one succeeds; the others raise
  `ObjectExistsError`. Fencing and the order of the WAL depend on this.
* `replace` overwrites the object with the given ETag only: an object that another writer has put
  meanwhile stays. So a request that takes effect late cannot undo a later one.
* When a PUT returns, the object is durable and visible to all later reads and listings.
* After a PUT that raised `StoreUnavailableError` or was cancelled, the object may exist or may
  still be created. A retry may find its own first attempt and raise `ObjectExistsError`. If the
  outcome matters, the caller reads the object back and compares.
* Errors are `KafscaleError`s; `StoreUnavailableError` if a retry may succeed.
"""

import re
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

import msgspec

from kafscale.errors import OperatingError
from kafscale.records.checksum import Buffer

KEY_BYTES_MAX: Final = 1024
"""The longest key in S3."""

PAGE_KEYS: Final = 1000
"""Maximum number of objects in a listing page, and of keys in an S3 DeleteObjects request."""

_KEY: Final = re.compile(r"(?!\.)[\w.@-]+(?:/(?!\.\.?(?:/|$))[\w.@-]+)*", re.ASCII)


class ObjectInfo(msgspec.Struct, frozen=True, gc=False):
    """Metadata of an object."""

    key: str
    size_bytes: int
    modified_ms: int
    etag: str = ""
    """Changes whenever the object is overwritten."""


class ObjectStore(Protocol):
    """Immutable bytes under keys."""

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        """Store the concatenated `parts` as one object; overwrite only if not `create`.

        The parts must not change until this returns.
        """

    async def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        """Overwrite the object that has this ETag, or raise `ObjectChangedError`."""

    async def get(self, key: str) -> memoryview: ...

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        """The bytes from `start` to `stop`; fewer only at the end of the object."""

    async def get_suffix(self, key: str, length: int) -> memoryview:
        """The last `length` bytes, or the whole object if it is shorter."""

    async def head(self, key: str) -> ObjectInfo: ...

    def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """All objects under `prefix`, which ends with a slash, in pages and ascending by key."""

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; missing ones are ignored."""

    async def close(self) -> None: ...


def is_key(text: str) -> bool:
    """Whether every store accepts this key, and none treats it as a relative path.

    >>> is_key("default/orders/0/segment-00000000000000000000.kfs")
    True
    >>> [is_key(text) for text in ("", "/a", "a/", "a//b", "a/../b", ".a", "a b")]
    [False, False, False, False, False, False, False]
    """
    return _KEY.fullmatch(text) is not None and len(text) <= KEY_BYTES_MAX


def check_key(key: str) -> None:
    """Raise for an invalid key, in optimised builds too: it may be part of a request."""
    if not is_key(key):
        raise OperatingError(f"invalid object key {key[:KEY_BYTES_MAX]!r}")


def check_prefix(prefix: str) -> None:
    if not (prefix.endswith("/") and is_key(prefix[:-1])):
        raise OperatingError(f"invalid listing prefix {prefix[:KEY_BYTES_MAX]!r}")
