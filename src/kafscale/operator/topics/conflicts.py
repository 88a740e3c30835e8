"""Which of several resources has a topic: the oldest one that still exists.

The laws: of resources that mean the same topic of the same cluster, the one that was made first has
it, by its name where that was in the same second; it keeps it until it is gone, not only until its
deletion has begun. Whoever is about to change a topic asks what is true `now`; others may be
answered from a list that is some seconds old, and so a thousand topics do not list each other a
thousand times.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from kafscale.operator.kube.api import Kube, Manifest
from kafscale.operator.kube.kinds import TOPICS
from kafscale.operator.spec.topic import TopicResource, read_topic

FRESH_MS: Final = 20_000

Meaning = tuple[str, str]
"""A cluster, and a topic of it."""


def meaning(resource: TopicResource) -> Meaning:
    return resource.spec.cluster_ref, resource.topic_name


def oldest(resources: Iterable[TopicResource]) -> dict[Meaning, TopicResource]:
    """Who has each topic, of all resources of a namespace."""
    found: dict[Meaning, TopicResource] = {}
    for resource in resources:
        rival = found.setdefault(meaning(resource), resource)
        if _age(resource) < _age(rival):
            found[meaning(resource)] = resource
    return found


def _age(resource: TopicResource) -> tuple[str, str]:
    # Moments in RFC 3339, all of them in UTC and in whole seconds, sort as text.
    return resource.created_at, resource.name


class _Listed(NamedTuple):
    ticket: int
    """The last question that was asked before the list began."""
    listed_ms: int
    holders: Mapping[Meaning, TopicResource]


class Rivals:
    """The resources of topics, as far as they stand in each other's way."""

    def __init__(self, kube: Kube, clock: Callable[[], int], *, fresh_ms: int = FRESH_MS) -> None:
        """`clock` is in milliseconds."""
        self._kube = kube
        self._clock = clock
        self._fresh_ms = fresh_ms
        self._ticket = 0
        self._listed: dict[str, _Listed] = {}
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def older(self, resource: TopicResource, *, now: bool) -> TopicResource | None:
        """The resource that has this one's topic, if it is another."""
        self._ticket += 1
        holders = await self._holders(resource.namespace, self._ticket if now else None)
        holder = holders.get(meaning(resource), resource)
        # The list may be older than the resource, and know another one by its name.
        is_other = holder.name != resource.name and _age(holder) < _age(resource)
        return holder if is_other else None

    async def _holders(self, namespace: str, ticket: int | None) -> Mapping[Meaning, TopicResource]:
        async with self._locks[namespace]:
            listed = self._listed.get(namespace)
            if listed is None or not self._is_good(listed, ticket):
                begun, begun_ms = self._ticket, self._clock()
                manifests = await self._kube.list(TOPICS, namespace)
                listed = _Listed(begun, begun_ms, oldest(_read(manifests)))
                self._listed[namespace] = listed
            return listed.holders

    def _is_good(self, listed: _Listed, ticket: int | None) -> bool:
        """Whether a list answers a question: begun after it was asked, or else begun lately."""
        if ticket is not None:
            return listed.ticket >= ticket
        return self._clock() - listed.listed_ms < self._fresh_ms


def _read(manifests: Iterable[Manifest]) -> Iterable[TopicResource]:
    for manifest in manifests:
        try:
            yield read_topic(manifest)
        except (msgspec.ValidationError, KeyError):
            continue  # Of no schema that we know: it means no topic.
