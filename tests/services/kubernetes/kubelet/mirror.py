"""What the API server has of a kind, seen from here: listed once, and watched from then on."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing

import aiohttp

from kafscale.operator.kube.kinds import Kind
from services.kubernetes.kubelet.api import Api, Manifest

REST_S = 0.2
"""Before the API server is asked again that did not answer."""

Key = tuple[str, str]
Listener = Callable[[Manifest, bool], None]
"""Is told of each object that is new or has changed, and whether it is gone."""


class Mirror:
    """All objects of a kind, by namespace and name."""

    def __init__(self, api: Api, kind: Kind) -> None:
        self.kind = kind
        self._api = api
        self._objects: dict[Key, Manifest] = {}
        self._listeners: list[Listener] = []
        self._is_filled = asyncio.Event()

    def __iter__(self) -> Iterator[Manifest]:
        return iter(list(self._objects.values()))

    def get(self, namespace: str, name: str) -> Manifest | None:
        return self._objects.get((namespace, name))

    def listen(self, listener: Listener) -> None:
        """Tell somebody of all there is now, and of what happens from now on."""
        self._listeners.append(listener)
        for manifest in self:
            listener(manifest, False)

    async def filled(self) -> None:
        await self._is_filled.wait()

    async def run(self) -> None:
        """Follow the API server, for ever."""
        while True:
            try:
                version = await self._list()
                async with aclosing(self._api.watch(self.kind.path(), version)) as events:
                    async for event, manifest in events:
                        if event == "ERROR":
                            break  # The server has forgotten where we were.
                        if event != "BOOKMARK":
                            self._take(manifest, is_gone=event == "DELETED")
            except (aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(REST_S)

    async def _list(self) -> str:
        listed = await self._api.get(self.kind.path())
        assert listed is not None, f"nothing is known of {self.kind.plural}"
        kind = {"apiVersion": self.kind.api_version, "kind": self.kind.kind}
        now = {_key(item): kind | item for item in listed["items"]}
        for key in self._objects.keys() - now.keys():
            self._take(self._objects[key], is_gone=True)
        for manifest in now.values():
            self._take(manifest, is_gone=False)
        self._is_filled.set()
        return listed["metadata"]["resourceVersion"]

    def _take(self, manifest: Manifest, *, is_gone: bool) -> None:
        if is_gone:
            self._objects.pop(_key(manifest), None)
        else:
            self._objects[_key(manifest)] = manifest
        for listener in self._listeners:
            listener(manifest, is_gone)


def _key(manifest: Manifest) -> Key:
    return manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]
