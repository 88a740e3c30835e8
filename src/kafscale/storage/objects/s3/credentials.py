"""The keys that requests to S3 are signed with, always at hand and always valid.

The laws: whoever signs a request never waits for new keys while the old ones are good, because a
service that issues keys may be away while S3 is not; keys are looked for again every minute, off
the event loop, and a failure to find any is a line in the log as long as there are older ones. How
they are found, and when those of a role have to be new, is left to `aws`.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from kafscale.errors import KafscaleError
from kafscale.observability.logging import get_logger
from kafscale.storage.objects.s3.bucket_config import S3Bucket

if TYPE_CHECKING:
    from obstore.store import S3Credential

    from kafscale.storage.objects.s3.boto import Aws, Keys

logger = get_logger(__name__)

RENEWAL_S: Final = 60
_CLIENT_MARGIN_S: Final = 300
"""How long before their end the client asks for new keys."""


class FixedCredentials:
    """The keys given, as a call: so no token in the environment is mixed with them."""

    __slots__ = ("_bucket",)

    def __init__(self, bucket: S3Bucket) -> None:
        self._bucket = bucket

    def __call__(self) -> "S3Credential":
        return {
            "access_key_id": self._bucket.access_key,
            "secret_access_key": self._bucket.secret_key,
            "token": self._bucket.session_token or None,
            "expires_at": None,
        }

    async def renew(self) -> None:
        """They are what they are."""

    async def close(self) -> None: ...


class RenewedCredentials:
    """Keys that change with time."""

    __slots__ = ("_clock", "_due_at", "_fetch", "_keys", "_renewal")

    def __init__(self, fetch: "Callable[[], Keys]", clock: Callable[[], float] = time.time) -> None:
        """`fetch` may block, and is called in threads; `clock` tells seconds since 1970."""
        self._fetch = fetch
        self._clock = clock
        self._keys: Keys | None = None
        self._due_at = 0.0
        self._renewal: asyncio.Task[None] | None = None

    async def __call__(self) -> "S3Credential":
        """What the client wants to know, which it asks again about when it is old."""
        if self._keys is None:
            await self.renew()
        elif self._clock() >= self._due_at:
            self._begin()
        assert self._keys is not None
        return {
            "access_key_id": self._keys.access_key,
            "secret_access_key": self._keys.secret_key,
            "token": self._keys.token,
            "expires_at": datetime.fromtimestamp(self._clock() + _CLIENT_MARGIN_S + RENEWAL_S, UTC),
        }

    async def renew(self) -> None:
        """Look for keys now; raise what stands in the way, unless there are older ones."""
        # The one who waits may be cancelled, and others wait for the same.
        await asyncio.shield(self._begin())

    async def close(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)

    def _begin(self) -> "asyncio.Task[None]":
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.ensure_future(self._look())
            self._renewal.add_done_callback(_retrieve)
        return self._renewal

    async def _look(self) -> None:
        self._due_at = self._clock() + RENEWAL_S
        try:
            self._keys = await asyncio.to_thread(self._fetch)
        except KafscaleError as error:
            if self._keys is None:
                raise
            logger.warning("credentials not renewed", error=str(error))


Credentials = FixedCredentials | RenewedCredentials


def credentials_of(bucket: S3Bucket) -> Credentials:
    """Where the keys for a bucket come from."""
    if bucket.access_key and not bucket.role_arn:
        return FixedCredentials(bucket)
    found: list[Aws] = []

    def fetch() -> "Keys":
        if not found:
            found.append(account(bucket))
        return found[0].keys()

    return RenewedCredentials(fetch)


def account(bucket: S3Bucket) -> "Aws":
    """AWS as the bucket's credentials open it; slow the first time, and not for the event loop."""
    from kafscale.storage.objects.s3.boto import Aws  # noqa: PLC0415 - half a second few need.

    return Aws(bucket)


def _retrieve(renewal: "asyncio.Task[Any]") -> None:
    # Whoever waited for it has been told; nobody may have.
    if not renewal.cancelled():
        renewal.exception()
