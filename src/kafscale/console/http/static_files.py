"""Serves the web app: files that were built from `web/` into the package.

Paths that are not files are routes of the single-page app and return its index page. Files under
`assets/` have content hashes in their names and are cached for a year; all others are revalidated.
"""

from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from kafscale.console.http.responses import IMMUTABLE, NO_CACHE

DIRECTORY: Final = Path(__file__).parents[1] / "static"
INDEX: Final = "index.html"
_ASSETS: Final = "assets/"
_COMPRESSED_BYTES_MIN: Final = 1024

_NOT_BUILT: Final = (
    "<!doctype html><html lang=en><title>Kafscale</title>"
    "<p>The web pages are not part of this installation. In a checkout,"
    " <code>make web</code> builds them. The API is available at <code>/api/v1</code>."
)


class WebAppFiles(StaticFiles):
    """Static files, with the index page as fallback."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory, check_dir=False)
        self._directory = directory

    async def check_config(self) -> None:
        """The directory may be missing; `_index` handles that."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        cache_control = IMMUTABLE if path.startswith(_ASSETS) else NO_CACHE
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            if error.status_code != 404 or path.startswith(_ASSETS):
                raise
            response = await self._index(scope)
        response.headers["Cache-Control"] = cache_control
        return response

    async def _index(self, scope: Scope) -> Response:
        if not (self._directory / INDEX).is_file():
            return HTMLResponse(_NOT_BUILT, status_code=503)
        return await super().get_response(INDEX, scope)


def static_app(directory: Path = DIRECTORY) -> ASGIApp:
    """The app that serves everything but the API."""
    return GZipMiddleware(WebAppFiles(directory), minimum_size=_COMPRESSED_BYTES_MIN)
