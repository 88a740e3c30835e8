"""Bells: who looks after a resource sleeps until something rings, or for a while at the most."""

import asyncio
from collections import defaultdict
from typing import NamedTuple


class Resource(NamedTuple):
    """A resource of ours."""

    kind: str
    namespace: str
    name: str


class Bells:
    """One bell a resource; what rings while nobody waits is heard by the next who does."""

    def __init__(self) -> None:
        self._bells: defaultdict[Resource, asyncio.Event] = defaultdict(asyncio.Event)

    def ring(self, resource: Resource) -> None:
        self._bells[resource].set()

    def ring_all(self, kind: str, namespace: str = "") -> None:
        """Ring for all of a kind that somebody looks after, in one namespace or in all."""
        for resource, bell in self._bells.items():
            if resource.kind == kind and namespace in {"", resource.namespace}:
                bell.set()

    async def wait(self, resource: Resource, seconds: float) -> None:
        """Return when it rings, or after so long."""
        bell = self._bells[resource]
        try:
            async with asyncio.timeout(seconds):
                await bell.wait()
        except TimeoutError:
            pass
        bell.clear()

    def forget(self, resource: Resource) -> None:
        self._bells.pop(resource, None)
