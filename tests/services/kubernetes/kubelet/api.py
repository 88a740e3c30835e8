"""The API server as the kubelet uses it: asynchronously, with watches.

What is not there any more is `None` rather than an error, as somebody else may always be quicker;
anything else that it refuses is a `RefusalError`. A server that cannot be reached is asked again
for as long as it takes: it may be restarted by a test.
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
GONE = {404, 409}
"""Nothing of that name, or another one of that name."""
MOOT = ((422, '"field":"metadata.uid"'), (403, "NamespaceTerminating"))
"""What a patch is told that is meant for a former object of the name, and what whoever makes
something is told where everything goes."""
BUSY = {429, 500, 502, 503, 504}
RETRY_S = 0.2
FAREWELL_S = 0.1
"""TLS says good-bye after aiohttp has returned."""


class RefusalError(Exception):
    """The API server does not do what it is asked."""


class Api:
    """A connection with the rights of a kubeconfig's user."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._url = cluster["server"]
        self._tls = ssl.create_default_context(cadata=authority)
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
        await asyncio.sleep(FAREWELL_S)

    async def get(self, path: str) -> Manifest | None:
        return await self._ask("GET", path)

    async def create(self, path: str, manifest: Manifest) -> Manifest | None:
        """What was made of it; None if there is one already."""
        return await self._ask("POST", path, manifest)

    async def patch(self, path: str, patch: Manifest, kind: str = MERGE) -> Manifest | None:
        return await self._ask("PATCH", path, patch, kind)

    async def delete(self, path: str, *, uid: str) -> None:
        """Delete at once, and only this very one."""
        wish = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        await self._ask("DELETE", path, wish)

    async def watch(self, path: str, version: str) -> AsyncGenerator[tuple[str, Manifest], None]:
        """What happens to the objects of a path after a version, until the server has enough."""
        assert self._session is not None
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
        }
        patience = aiohttp.ClientTimeout(total=None)
        async with self._session.get(path, params=query, timeout=patience) as answer:
            async for line in answer.content:
                event = json.loads(line)
                yield event["type"], event["object"]

    async def _ask(
        self, method: str, path: str, body: Manifest | None = None, kind: str = JSON
    ) -> Manifest | None:
        while True:
            try:
                code, text = await self._exchange(method, path, body, kind)
            except (aiohttp.ClientError, TimeoutError):
                code, text = 503, ""
            if code < 400:
                return json.loads(text)
            if code in GONE or any(code == each and words in text for each, words in MOOT):
                return None
            if code not in BUSY:
                raise RefusalError(f"{method} {path}: {code} {text}")
            await asyncio.sleep(RETRY_S)

    async def _exchange(
        self, method: str, path: str, body: Manifest | None, kind: str
    ) -> tuple[int, str]:
        assert self._session is not None
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": kind}
        async with self._session.request(method, path, data=data, headers=headers) as answer:
            return answer.status, await answer.text()
