"""The pages: files that were built from `web/` and are part of the package.

The law: a name that is not a file is a page of the app, which finds its way by itself; so the one
HTML file answers for it. Files under `assets/` have names that change with what is in them, and may
be kept for a year; all others are asked for again.
"""

from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from kafscale.console.http.security_headers import ASKED_AGAIN, KEPT_FOR_A_YEAR

DIRECTORY: Final = Path(__file__).parents[1] / "static"
INDEX: Final = "index.html"
_ASSETS: Final = "assets/"
_COMPRESSED_BYTES_MIN: Final = 1024

_UNBUILT: Final = (
    "<!doctype html><html lang=en><title>Kafscale</title>"
    "<p>The pages of the console are not part of this installation. In a checkout,"
    " <code>make web</code> builds them. The API is there: <code>/api/v1</code>."
)


class Pages(StaticFiles):
    """The files, with the app's own page for every name that is none of them."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory, check_dir=False)
        self._directory = directory

    async def check_config(self) -> None:
        """There may be none, which is said by `_index`."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        kept = KEPT_FOR_A_YEAR if path.startswith(_ASSETS) else ASKED_AGAIN
        try:
            answer = await super().get_response(path, scope)
        except HTTPException as error:
            if error.status_code != 404 or path.startswith(_ASSETS):
                raise
            answer = await self._index(scope)
        answer.headers["Cache-Control"] = kept
        return answer

    async def _index(self, scope: Scope) -> Response:
        if not (self._directory / INDEX).is_file():
            return HTMLResponse(_UNBUILT, status_code=503)
        return await super().get_response(INDEX, scope)


def pages(directory: Path = DIRECTORY) -> ASGIApp:
    """What answers for everything that is not the API."""
    return GZipMiddleware(Pages(directory), minimum_size=_COMPRESSED_BYTES_MIN)
