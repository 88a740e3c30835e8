"""Credentials that sign requests to S3.

Invariants: requests never wait for new keys while the old ones are valid, because the service that
issues keys may be unavailable while S3 is not. Keys are fetched again every minute, off the event
loop; a failure is only logged while there are older keys. `boto` fetches keys, and decides when
those of a role have to be refreshed.
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

    from kafscale.storage.objects.s3.boto import AccessKeys, BotoClient

logger = get_logger(__name__)

REFRESH_S: Final = 60
_CLIENT_MARGIN_S: Final = 300
"""How long before their expiry the client asks for new keys."""


class FixedCredentials:
    """Fixed keys, as a credential provider, so that no token of the environment is added."""

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

    async def refresh(self) -> None:
        """Nothing to refresh."""

    async def close(self) -> None: ...


class RefreshingCredentials:
    """Keys that expire."""

    __slots__ = ("_clock", "_due_at", "_fetch", "_keys", "_refresh")

    def __init__(
        self, fetch: "Callable[[], AccessKeys]", clock: Callable[[], float] = time.time
    ) -> None:
        """`fetch` may block, and is called in threads; `clock` returns seconds since 1970."""
        self._fetch = fetch
        self._clock = clock
        self._keys: AccessKeys | None = None
        self._due_at = 0.0
        self._refresh: asyncio.Task[None] | None = None

    async def __call__(self) -> "S3Credential":
        """Return the keys; the client calls again when they expire."""
        if self._keys is None:
            await self.refresh()
        elif self._clock() >= self._due_at:
            self._start_refresh()
        assert self._keys is not None
        return {
            "access_key_id": self._keys.access_key,
            "secret_access_key": self._keys.secret_key,
            "token": self._keys.token,
            "expires_at": datetime.fromtimestamp(self._clock() + _CLIENT_MARGIN_S + REFRESH_S, UTC),
        }

    async def refresh(self) -> None:
        """Fetch keys now; raise on failure, unless there are older ones."""
        # Shielded, because other callers may wait for the same fetch.
        await asyncio.shield(self._start_refresh())

    async def close(self) -> None:
        if self._refresh is not None:
            self._refresh.cancel()
            await asyncio.gather(self._refresh, return_exceptions=True)

    def _start_refresh(self) -> "asyncio.Task[None]":
        if self._refresh is None or self._refresh.done():
            self._refresh = asyncio.ensure_future(self._fetch_keys())
            self._refresh.add_done_callback(_retrieve)
        return self._refresh

    async def _fetch_keys(self) -> None:
        self._due_at = self._clock() + REFRESH_S
        try:
            self._keys = await asyncio.to_thread(self._fetch)
        except KafscaleError as error:
            if self._keys is None:
                raise
            logger.warning("credentials not refreshed", error=str(error))


Credentials = FixedCredentials | RefreshingCredentials


def credentials_for(bucket: S3Bucket) -> Credentials:
    """The credential provider of a bucket."""
    if bucket.access_key and not bucket.role_arn:
        return FixedCredentials(bucket)
    clients: list[BotoClient] = []

    def fetch() -> "AccessKeys":
        if not clients:
            clients.append(boto_client(bucket))
        return clients[0].keys()

    return RefreshingCredentials(fetch)


def boto_client(bucket: S3Bucket) -> "BotoClient":
    """A botocore client with the bucket's credentials; slow to import, not for the event loop."""
    from kafscale.storage.objects.s3.boto import BotoClient  # noqa: PLC0415 - slow, seldom used.

    return BotoClient(bucket)


def _retrieve(refresh: "asyncio.Task[Any]") -> None:
    # Mark the exception as retrieved; no caller may be waiting.
    if not refresh.cancelled():
        refresh.exception()
