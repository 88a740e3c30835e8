"""`SubscriptionStore`: the subscriptions of client metrics, and operations that change them.

Invariants: reads do not wait; one watch keeps the subscriptions current, so that a change by one
broker is soon visible on all. An operation returns when its change is visible here. A subscription
that cannot be decoded is logged and treated as absent.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from kafscale.errors import DamagedObjectError, KafscaleError
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.cluster.watch_cache import WatchCache
from kafscale.metadata.schema.protobuf import parse, serialize
from kafscale.metadata.store.base import (
    Delete,
    Entry,
    MetadataStore,
    Put,
    absent,
    time_limit,
    unchanged,
)
from kafscale.metadata.telemetry.subscription import Subscription, check
from kafscale.observability.logging import get_logger

PREFIX: Final = "/kafscale/telemetry/"
TIMEOUT_MS: Final = 30_000
"""The time limit of a change."""

Configs = Mapping[str, str]

logger = get_logger(__name__)


class SubscriptionStore:
    """All subscriptions of a cluster."""

    def __init__(self, store: MetadataStore, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self._store = store
        self._timeout_ms = timeout_ms
        self._configs: dict[str, Configs] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._watch_cache = WatchCache(store, PREFIX, self._changed)
        self.configs: Mapping[str, Configs] = MappingProxyType(self._configs)
        """The explicit configs of each subscription, by name."""
        self.subscriptions: Mapping[str, Subscription] = MappingProxyType(self._subscriptions)
        self.version = 0
        """Grows with every change."""

    async def start(self) -> None:
        """Read all subscriptions, then watch them until `close`."""
        await self._watch_cache.start()

    async def close(self) -> None:
        await self._watch_cache.close()

    async def alter(self, name: str, change: Callable[[Configs], Configs]) -> None:
        """Change the configs of a subscription; without any, it is deleted.

        `change` is called again after a conflict; it raises for invalid configs.
        """
        key = _key(name)
        async with time_limit(f"the subscription {name!r} was not changed", self._timeout_ms):
            while True:
                entry = await self._store.get(key)
                before = _decoded(entry)
                after = change(before)
                if after == before:
                    return
                compare = unchanged(entry) if entry else absent(key)
                operation = Put(key, encode(name, after)) if after else Delete(key)
                done = await self._store.commit([compare], [operation])
                if done.succeeded:
                    await self._watch_cache.wait_for_revision(done.revision)
                    return

    def _changed(self, key: str, entry: Entry | None) -> None:
        name = _name(key)
        self._configs.pop(name, None)
        self._subscriptions.pop(name, None)
        self.version += 1
        if entry is None:
            return
        try:
            configs = decode(entry)
        except DamagedObjectError as error:
            logger.error("subscription damaged", key=entry.key, reason=error.reason)
            return
        self._configs[name] = configs
        self._subscriptions[name] = Subscription.of(name, configs)


def encode(name: str, configs: Configs) -> bytes:
    return serialize(messages.ClientMetrics(name=name, configs=configs))


def decode(entry: Entry) -> dict[str, str]:
    record = parse(messages.ClientMetrics(), entry)
    if entry.key != _key(record.name):
        raise DamagedObjectError(entry.key, f"contains the subscription {record.name!r}")
    configs = dict(record.configs)
    try:
        check(record.name, configs)
    except KafscaleError as error:
        raise DamagedObjectError(entry.key, str(error)) from error
    return configs


def _decoded(entry: Entry | None) -> dict[str, str]:
    """The configs of an entry; a damaged one has none, as in the cache."""
    try:
        return decode(entry) if entry else {}
    except DamagedObjectError:
        return {}


def _key(name: str) -> str:
    return PREFIX + name.replace("%", "%25").replace("/", "%2F")


def _name(key: str) -> str:
    return key.removeprefix(PREFIX).replace("%2F", "/").replace("%25", "%")
