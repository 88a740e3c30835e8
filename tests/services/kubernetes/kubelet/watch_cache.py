"""A local copy of all objects of a kind: listed once, then watched."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing

import aiohttp

from kafscale.operator.kube.api import Kind
from services.kubernetes.kubelet.api import Api, Manifest

RETRY_S = 0.2
"""The delay before an unavailable API server is contacted again."""

Key = tuple[str, str]
Listener = Callable[[Manifest, bool], None]
"""Called for each object that is new or has changed, and whether it is deleted."""


class WatchCache:
    """All objects of a kind, by namespace and name."""

    def __init__(self, api: Api, kind: Kind) -> None:
        self.kind = kind
        self._api = api
        self._objects: dict[Key, Manifest] = {}
        self._listeners: list[Listener] = []
        self._is_synced = asyncio.Event()

    def __iter__(self) -> Iterator[Manifest]:
        return iter(list(self._objects.values()))

    def get(self, namespace: str, name: str) -> Manifest | None:
        return self._objects.get((namespace, name))

    def listen(self, listener: Listener) -> None:
        """Call a listener for all objects now, and for each change."""
        self._listeners.append(listener)
        for manifest in self:
            listener(manifest, False)

    async def synced(self) -> None:
        await self._is_synced.wait()

    async def run(self) -> None:
        """Follow the API server, forever."""
        while True:
            try:
                version = await self._list()
                async with aclosing(self._api.watch(self.kind.path(), version)) as events:
                    async for event, manifest in events:
                        if event == "ERROR":
                            break  # The version is too old.
                        if event != "BOOKMARK":
                            self._apply(manifest, is_deleted=event == "DELETED")
            except (aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(RETRY_S)

    async def _list(self) -> str:
        response = await self._api.get(self.kind.path())
        assert response is not None, f"the API server has no {self.kind.plural}"
        kind = {"apiVersion": self.kind.api_version, "kind": self.kind.kind}
        now = {_key(item): kind | item for item in response["items"]}
        for key in self._objects.keys() - now.keys():
            self._apply(self._objects[key], is_deleted=True)
        for manifest in now.values():
            self._apply(manifest, is_deleted=False)
        self._is_synced.set()
        return response["metadata"]["resourceVersion"]

    def _apply(self, manifest: Manifest, *, is_deleted: bool) -> None:
        if is_deleted:
            self._objects.pop(_key(manifest), None)
        else:
            self._objects[_key(manifest)] = manifest
        for listener in self._listeners:
            listener(manifest, is_deleted)


def _key(manifest: Manifest) -> Key:
    return manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]
