"""An asynchronous client of the API server, with watches.

A missing or conflicting object is `None` rather than an error, because others may always be faster;
other errors are an `ApiError`. An unavailable server is retried forever: a test may restart it.
"""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml

Manifest = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
WATCH_S = 600
LINE_BYTES_MAX = 8 << 20
NOT_FOUND_CODES = {404, 409}
"""No object with that name, or another one."""
STALE_ERRORS = ((422, '"field":"metadata.uid"'), (403, "NamespaceTerminating"))
"""Errors for a patch of a former object with this name, and for a creation in a namespace that is
being deleted.
"""
RETRIABLE_CODES = {429, 500, 502, 503, 504}
RETRY_S = 0.2
TLS_CLOSE_S = 0.1
"""TLS connections close after aiohttp has returned."""


class ApiError(Exception):
    """An error response of the API server."""


class Api:
    """A client with the permissions of a kubeconfig's user."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        ca_file = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._url = cluster["server"]
        self._tls = ssl.create_default_context(cadata=ca_file)
        self._headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            base_url=self._url,
            headers=self._headers,
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=0),
            timeout=aiohttp.ClientTimeout(total=30),
            read_bufsize=LINE_BYTES_MAX,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()
        await asyncio.sleep(TLS_CLOSE_S)

    async def get(self, path: str) -> Manifest | None:
        return await self._request("GET", path)

    async def create(self, path: str, manifest: Manifest) -> Manifest | None:
        """The created object; None if it exists already."""
        return await self._request("POST", path, manifest)

    async def patch(self, path: str, patch: Manifest, kind: str = MERGE) -> Manifest | None:
        return await self._request("PATCH", path, patch, kind)

    async def delete(self, path: str, *, uid: str) -> None:
        """Delete at once, and only the object with this uid."""
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        await self._request("DELETE", path, options)

    async def watch(self, path: str, version: str) -> AsyncGenerator[tuple[str, Manifest], None]:
        """Events of a path after a version, until the server ends the watch."""
        assert self._session is not None
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
        }
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(path, params=query, timeout=timeout) as response:
            async for line in response.content:
                event = json.loads(line)
                yield event["type"], event["object"]

    async def _request(
        self, method: str, path: str, body: Manifest | None = None, kind: str = JSON
    ) -> Manifest | None:
        while True:
            try:
                code, text = await self._send(method, path, body, kind)
            except (aiohttp.ClientError, TimeoutError):
                code, text = 503, ""
            if code < 400:
                return json.loads(text)
            if code in NOT_FOUND_CODES or any(
                code == each and text_part in text for each, text_part in STALE_ERRORS
            ):
                return None
            if code not in RETRIABLE_CODES:
                raise ApiError(f"{method} {path}: {code} {text}")
            await asyncio.sleep(RETRY_S)

    async def _send(
        self, method: str, path: str, body: Manifest | None, kind: str
    ) -> tuple[int, str]:
        assert self._session is not None
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": kind}
        async with self._session.request(method, path, data=data, headers=headers) as response:
            return response.status, await response.text()
