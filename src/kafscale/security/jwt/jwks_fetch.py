"""Fetching a JWKS from a URL, in a thread of its own.

The laws: what is fetched is bounded in size and in time, and comes from where the setting says: a
redirection is refused. Whatever goes wrong is an `OperatingError`. When to fetch, and what to make
of it, is left to `jwks`.
"""

from collections.abc import Callable
from http.client import HTTPException, HTTPMessage
from typing import IO, Final
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from kafscale.errors import OperatingError

TIME_MS_MAX: Final = 10_000
CONTENT_BYTES_MAX: Final = 1024 * 1024

_PIECE_BYTES: Final = 64 * 1024


class _NoRedirection(HTTPRedirectHandler):
    def redirect_request(  # noqa: PLR0917 - as the standard library calls it.
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Follow nobody: keys are trusted because of where they are."""


def fetch(url: str, clock: Callable[[], int]) -> bytes:
    """What is at a URL; it blocks, and raises `OperatingError`."""
    assert url.startswith(("https://", "http://")), "the setting takes no others"
    request = Request(  # noqa: S310 - see above.
        url, headers={"Accept": "application/json", "User-Agent": "kafscale"}
    )
    try:
        return _read(request, clock)
    except HTTPError as error:
        error.close()
        raise OperatingError(f"the answer is {error.code} {error.reason}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise OperatingError(str(error) or type(error).__name__) from None


def _read(request: Request, clock: Callable[[], int]) -> bytes:
    until_ms = clock() + TIME_MS_MAX
    content = bytearray()
    with build_opener(_NoRedirection).open(request, timeout=TIME_MS_MAX / 1000) as response:
        while piece := response.read1(_PIECE_BYTES):
            content += piece
            if len(content) > CONTENT_BYTES_MAX:
                raise OperatingError(f"the answer is larger than {CONTENT_BYTES_MAX} bytes")
            if clock() > until_ms:
                raise OperatingError(f"the answer takes longer than {TIME_MS_MAX} ms")
    return bytes(content)
