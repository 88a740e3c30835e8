"""`Jwks`: the keys of tokens, from a file, from a URL, or from both; kept fresh.

The laws: without keys there is no start. Later, whatever goes wrong is told and leaves the keys as
they were. A file is read again when it has changed. A URL is fetched again at the interval of the
setting, sooner after a failure or when a token names a key that is not known, but not more often
than every 10 seconds, however many such tokens come.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kafscale.config.sections.security import Sasl
from kafscale.errors import ConfigError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.security.jwt import jwks_fetch, keys
from kafscale.security.jwt.keys import PublicKey, TokenKey
from kafscale.security.reloading_file import FileSource

log = get_logger(__name__)

Fetch = Callable[[str, Callable[[], int]], bytes]
"""What is at a URL; it may block, and raises `OperatingError`."""

FETCH_INTERVAL_MS_MIN: Final = 10_000
RETRY_MS: Final = 60_000
"""How long after a failure it is tried again."""


class Jwks:
    """The keys that are trusted at the moment."""

    def __init__(
        self, settings: Sasl, clock: Callable[[], int], fetch: Fetch = jwks_fetch.fetch
    ) -> None:
        self._path = settings.oauth_jwks_file
        self._url = settings.oauth_jwks_url
        self._refresh_ms = settings.oauth_jwks_refresh_ms
        self._clock = clock
        self._fetch = fetch
        self._file: FileSource[tuple[TokenKey, ...]] | None = None
        self._fetched: tuple[TokenKey, ...] = ()
        self._is_wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Get the keys for the first time; raises `ConfigError`."""
        assert self._task is None, "started twice"
        if not self._path and not self._url:
            raise ConfigError(
                "sasl.enabledMechanisms offers OAUTHBEARER, but there are no keys to verify tokens"
                " with; set sasl.oauthJwksFile or sasl.oauthJwksUrl"
            )
        if self._path:
            self._file = FileSource(Path(self._path), _read_file, self._clock)
        if self._url:
            try:
                await self._refresh()
            except OperatingError as error:
                raise ConfigError(
                    f"sasl.oauthJwksUrl names {self._url}, from where no keys came: {error}"
                ) from None
            self._task = asyncio.create_task(self._follow(), name="keys of tokens")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def find(self, key_id: str | None, algorithm: str) -> list[PublicKey]:
        """The keys that may have signed a token; if there is none, there may be one later."""
        from_file = self._file.value() if self._file is not None else ()
        found = keys.fitting((*from_file, *self._fetched), key_id, algorithm)
        if not found:
            self._is_wanted.set()
        return found

    async def _follow(self) -> None:
        pause_ms = self._refresh_ms
        while True:
            await self._wait(pause_ms)
            pause_ms = min(self._refresh_ms, RETRY_MS)
            try:
                await self._refresh()
                pause_ms = self._refresh_ms
            except OperatingError as error:
                log.warning("keys of tokens not fetched", url=self._url, reason=str(error))
            except Exception:
                log.exception("keys of tokens not fetched", url=self._url)

    async def _wait(self, pause_ms: int) -> None:
        """Wait until keys are due, or until a key is missed; the least time passes in any case."""
        least_ms = min(pause_ms, FETCH_INTERVAL_MS_MIN)
        await asyncio.sleep(least_ms / 1000)
        try:
            async with asyncio.timeout((pause_ms - least_ms) / 1000):
                await self._is_wanted.wait()
        except TimeoutError:
            pass  # They are due.

    async def _refresh(self) -> None:
        self._is_wanted.clear()
        try:
            async with asyncio.timeout(jwks_fetch.TIME_MS_MAX / 1000):
                content = await asyncio.to_thread(self._fetch, self._url, self._clock)
            self._fetched = keys.read(content)
        except TimeoutError:
            raise OperatingError("there is no answer") from None
        except ValueError as error:
            raise OperatingError(f"the answer {error}") from None


def _read_file(path: Path) -> tuple[TokenKey, ...]:
    try:
        with path.open("rb") as file:
            content = file.read(jwks_fetch.CONTENT_BYTES_MAX)
        return keys.read(content)
    except OSError as error:
        raise ConfigError(
            f"sasl.oauthJwksFile names {path}, which cannot be read: {error.strerror}; name a file"
            " that this process may read"
        ) from None
    except ValueError as error:
        raise ConfigError(f"sasl.oauthJwksFile names {path}, which {error}") from None
