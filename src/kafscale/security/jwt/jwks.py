"""`Jwks`: the public keys that verify tokens, from a file, a URL, or both, kept current.

Invariants:

* The broker does not start without keys. Later failures are logged and leave the keys unchanged.
* A file is read again when it changes. A URL is fetched again at `sasl.oauthJwksRefreshMs`, and
  sooner after a failure or when a token names an unknown key, but at most every 10 seconds, however
  many such tokens arrive.
* A fetch is bounded in size and time and follows no redirects. Failures are `OperatingError`s.
"""

import asyncio
from collections.abc import Callable
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Final
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from kafscale.config.sections.security import Sasl
from kafscale.errors import ConfigError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.security.jwt import keys
from kafscale.security.jwt.keys import PublicKey, TokenKey
from kafscale.security.reloading_file import ReloadingFile

logger = get_logger(__name__)

Fetch = Callable[[str, Callable[[], int]], bytes]
"""Returns the content of a URL; it may block, and raises `OperatingError`."""

TIME_MS_MAX: Final = 10_000
CONTENT_BYTES_MAX: Final = 1024 * 1024
FETCH_INTERVAL_MS_MIN: Final = 10_000
RETRY_MS: Final = 60_000
"""How long to wait after a failed fetch."""

_CHUNK_BYTES: Final = 64 * 1024


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(  # noqa: PLR0917 - the signature of the standard library.
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Follow no redirect: keys are trusted because of the URL that is configured."""


def fetch(url: str, clock: Callable[[], int]) -> bytes:
    """Return the content of a URL; it blocks, and raises `OperatingError`."""
    assert url.startswith(("https://", "http://")), "the setting accepts no other scheme"
    request = Request(  # noqa: S310 - see the assertion.
        url, headers={"Accept": "application/json", "User-Agent": "kafscale"}
    )
    try:
        return _read_response(request, clock)
    except HTTPError as error:
        error.close()
        raise OperatingError(f"the response is {error.code} {error.reason}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise OperatingError(str(error) or type(error).__name__) from None


class Jwks:
    """The keys that are trusted at the moment."""

    def __init__(self, settings: Sasl, clock: Callable[[], int], fetch: Fetch = fetch) -> None:
        self._path = settings.oauth_jwks_file
        self._url = settings.oauth_jwks_url
        self._refresh_ms = settings.oauth_jwks_refresh_ms
        self._clock = clock
        self._fetch = fetch
        self._file: ReloadingFile[tuple[TokenKey, ...]] | None = None
        self._fetched: tuple[TokenKey, ...] = ()
        self._key_missing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Load the keys for the first time; raises `ConfigError`."""
        assert self._task is None, "started twice"
        if not self._path and not self._url:
            raise ConfigError(
                "sasl.enabledMechanisms offers OAUTHBEARER, but there are no keys to verify tokens"
                " with; set sasl.oauthJwksFile or sasl.oauthJwksUrl"
            )
        if self._path:
            self._file = ReloadingFile(Path(self._path), _read_file, self._clock)
        if self._url:
            try:
                await self._refresh()
            except OperatingError as error:
                raise ConfigError(
                    f"sasl.oauthJwksUrl: no keys could be fetched from {self._url}: {error}"
                ) from None
            self._task = asyncio.create_task(self._run(), name="JWKS refresh")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def find(self, key_id: str | None, algorithm: str) -> list[PublicKey]:
        """Return the keys that may have signed a token; if there are none, schedule a fetch."""
        from_file = self._file.value() if self._file is not None else ()
        matching = keys.matching_keys((*from_file, *self._fetched), key_id, algorithm)
        if not matching:
            self._key_missing.set()
        return matching

    async def _run(self) -> None:
        pause_ms = self._refresh_ms
        while True:
            await self._wait(pause_ms)
            pause_ms = min(self._refresh_ms, RETRY_MS)
            try:
                await self._refresh()
                pause_ms = self._refresh_ms
            except OperatingError as error:
                logger.warning("JWKS not fetched", url=self._url, reason=str(error))
            except Exception:
                logger.exception("JWKS not fetched", url=self._url)

    async def _wait(self, pause_ms: int) -> None:
        """Wait for the next refresh or a missing key, but at least `FETCH_INTERVAL_MS_MIN`."""
        minimum_ms = min(pause_ms, FETCH_INTERVAL_MS_MIN)
        await asyncio.sleep(minimum_ms / 1000)
        try:
            async with asyncio.timeout((pause_ms - minimum_ms) / 1000):
                await self._key_missing.wait()
        except TimeoutError:
            pass  # The refresh is due.

    async def _refresh(self) -> None:
        self._key_missing.clear()
        try:
            async with asyncio.timeout(TIME_MS_MAX / 1000):
                content = await asyncio.to_thread(self._fetch, self._url, self._clock)
            self._fetched = keys.parse_jwks(content)
        except TimeoutError:
            raise OperatingError("timed out") from None
        except ValueError as error:
            raise OperatingError(f"the response {error}") from None


def _read_file(path: Path) -> tuple[TokenKey, ...]:
    try:
        with path.open("rb") as file:
            content = file.read(CONTENT_BYTES_MAX)
        return keys.parse_jwks(content)
    except OSError as error:
        raise ConfigError(
            f"sasl.oauthJwksFile: {path} cannot be read: {error.strerror}; name a file that this"
            " process may read"
        ) from None
    except ValueError as error:
        raise ConfigError(f"sasl.oauthJwksFile: {path} {error}") from None


def _read_response(request: Request, clock: Callable[[], int]) -> bytes:
    deadline_ms = clock() + TIME_MS_MAX
    content = bytearray()
    with build_opener(_NoRedirects).open(request, timeout=TIME_MS_MAX / 1000) as response:
        while chunk := response.read1(_CHUNK_BYTES):
            content += chunk
            if len(content) > CONTENT_BYTES_MAX:
                raise OperatingError(f"the response is larger than {CONTENT_BYTES_MAX} bytes")
            if clock() > deadline_ms:
                raise OperatingError(f"the response takes longer than {TIME_MS_MAX} ms")
    return bytes(content)
