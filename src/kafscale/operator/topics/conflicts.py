"""Which of several resources owns a topic: the oldest one that still exists.

Invariants: of resources that name the same topic of the same cluster, the one created first owns
it; ties are broken by name. It owns the topic until it is gone, not only until its deletion has
begun. Before a topic is changed the owner is read again (`now=True`); other callers may get a list
that is some seconds old, so that a thousand topics do not list each other a thousand times.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from kafscale.operator.kube.api import TOPICS, Kube, Manifest
from kafscale.operator.spec.topic import TopicResource, read_topic

FRESH_MS: Final = 20_000

TopicKey = tuple[str, str]
"""A cluster and the name of one of its topics."""


def topic_key(resource: TopicResource) -> TopicKey:
    return resource.spec.cluster_ref, resource.topic_name


def owners_by_topic(resources: Iterable[TopicResource]) -> dict[TopicKey, TopicResource]:
    """The owner of each topic, among all resources of a namespace."""
    owners: dict[TopicKey, TopicResource] = {}
    for resource in resources:
        rival = owners.setdefault(topic_key(resource), resource)
        if _age(resource) < _age(rival):
            owners[topic_key(resource)] = resource
    return owners


def _age(resource: TopicResource) -> tuple[str, str]:
    # Timestamps in RFC 3339, all in UTC and whole seconds, sort as text.
    return resource.created_at, resource.name


class _Listed(NamedTuple):
    sequence: int
    """The number of the last request made before the listing started."""
    listed_ms: int
    owners: Mapping[TopicKey, TopicResource]


class TopicOwners:
    """Finds conflicts between topic resources."""

    def __init__(self, kube: Kube, clock: Callable[[], int], *, fresh_ms: int = FRESH_MS) -> None:
        """`clock` is in milliseconds."""
        self._kube = kube
        self._clock = clock
        self._fresh_ms = fresh_ms
        self._sequence = 0
        self._listed: dict[str, _Listed] = {}
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def conflicting(self, resource: TopicResource, *, now: bool) -> TopicResource | None:
        """The resource that owns this one's topic, if it is another one."""
        self._sequence += 1
        owners = await self._list_owners(resource.namespace, self._sequence if now else None)
        owner = owners.get(topic_key(resource), resource)
        # The list may be older than the resource, and contain a former one of the same name.
        is_other = owner.name != resource.name and _age(owner) < _age(resource)
        return owner if is_other else None

    async def _list_owners(
        self, namespace: str, sequence: int | None
    ) -> Mapping[TopicKey, TopicResource]:
        async with self._locks[namespace]:
            listed = self._listed.get(namespace)
            if listed is None or not self._is_fresh_enough(listed, sequence):
                begun, begun_ms = self._sequence, self._clock()
                manifests = await self._kube.list(TOPICS, namespace)
                listed = _Listed(begun, begun_ms, owners_by_topic(_read(manifests)))
                self._listed[namespace] = listed
            return listed.owners

    def _is_fresh_enough(self, listed: _Listed, sequence: int | None) -> bool:
        """Whether a list was started after the request, or else is recent."""
        if sequence is not None:
            return listed.sequence >= sequence
        return self._clock() - listed.listed_ms < self._fresh_ms


def _read(manifests: Iterable[Manifest]) -> Iterable[TopicResource]:
    for manifest in manifests:
        try:
            yield read_topic(manifest)
        except (msgspec.ValidationError, KeyError):
            continue  # An unknown schema names no topic.
