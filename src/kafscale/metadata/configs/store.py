"""`ConfigStore`: the dynamic configs of groups, brokers and subscriptions of client metrics.

Invariants:

1. Reads do not wait. A watch keeps the configs current, so that a change by one broker is soon
   visible on all. A change returns when it is visible here.
2. A change is one commit that compares what it has read: of two that change one entity at the same
   time, each sees the result of the other.
3. An entity without configs has no record. Their number and sizes are limited, because every broker
   has all of them in memory.
4. A record that cannot be decoded is logged and treated as empty.

Those who change configs validate them.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from kafscale.errors import DamagedObjectError, PolicyViolationError
from kafscale.metadata.cluster.watch_cache import WatchCache
from kafscale.metadata.configs.model import (
    CONFIGS,
    ConfigEntity,
    Configs,
    EntityKind,
    decode_configs,
    encode_configs,
    entity_of,
)
from kafscale.metadata.store.base import Delete, Entry, MetadataStore, Put, absent, time_limit
from kafscale.metadata.store.base import unchanged as is_unchanged
from kafscale.observability.logging import get_logger

TIMEOUT_MS: Final = 30_000
"""The time limit of a change."""
ENTITIES_MAX: Final = 10_000
RECORD_BYTES_MAX: Final = 16 * 1024

Listener = Callable[[ConfigEntity], None]
"""Called with the entity whose configs have changed."""

_NONE: Final[Configs] = MappingProxyType({})

logger = get_logger(__name__)


class ConfigStore:
    """The dynamic configs of all entities that have any."""

    def __init__(
        self,
        store: MetadataStore,
        *,
        timeout_ms: int = TIMEOUT_MS,
        entities_max: int = ENTITIES_MAX,
    ) -> None:
        self._store = store
        self._entities_max = entities_max
        self._timeout_ms = timeout_ms
        self._configs: dict[ConfigEntity, Configs] = {}
        self._listeners: list[Listener] = []
        self._watch_cache = WatchCache(
            store, CONFIGS, self._changed, lambda key: entity_of(key) is not None
        )
        self.configs: Mapping[ConfigEntity, Configs] = MappingProxyType(self._configs)

    @property
    def connected(self) -> bool:
        """True while the watch works; if false, the configs may be outdated."""
        return self._watch_cache.connected

    async def start(self) -> None:
        """Read all configs, then watch them until `close`."""
        await self._watch_cache.start()

    async def close(self) -> None:
        await self._watch_cache.close()

    def get(self, entity: ConfigEntity) -> Configs:
        return self._configs.get(entity, _NONE)

    def names(self, kind: EntityKind) -> list[str]:
        """The names of the entities of a kind that have configs."""
        return sorted(entity.name for entity in self._configs if entity.kind is kind)

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` after every change; it must not block."""
        self._listeners.append(listener)

    async def alter(self, entity: ConfigEntity, change: Callable[[Configs], Configs]) -> None:
        """Change the configs of an entity; `change` is called again after a conflict."""
        async with time_limit(f"the configs of {entity.name!r} were not changed", self._timeout_ms):
            while True:
                entry = await self._store.get(entity.key)
                before = _decoded(entry)
                after = change(before)
                if after == before:
                    return
                self._check_size(entity, after)
                operation = Put(entity.key, encode_configs(after)) if after else Delete(entity.key)
                compare = is_unchanged(entry) if entry else absent(entity.key)
                done = await self._store.commit([compare], [operation])
                if done.succeeded:
                    await self._watch_cache.wait_for_revision(done.revision)
                    return

    def _check_size(self, entity: ConfigEntity, configs: Configs) -> None:
        if len(encode_configs(configs)) > RECORD_BYTES_MAX:
            raise PolicyViolationError(
                f"the configs have more than {RECORD_BYTES_MAX} bytes; delete some of them first"
            )
        if entity not in self._configs and len(self._configs) >= self._entities_max:
            raise PolicyViolationError(
                f"{self._entities_max} groups, brokers and subscriptions have configs, which is the"
                " limit; delete those that are not needed"
            )

    def _changed(self, key: str, entry: Entry | None) -> None:
        entity = entity_of(key)
        assert entity is not None, key
        before = self._configs.pop(entity, _NONE)
        after = _decoded(entry)
        if after:
            self._configs[entity] = after
        if before == after:
            return
        for listener in self._listeners:
            try:
                listener(entity)
            except Exception:
                # A failing listener must not stop the watch.
                logger.exception("config listener failed", kind=entity.kind, name=entity.name)


def _decoded(entry: Entry | None) -> Configs:
    if entry is None:
        return _NONE
    try:
        return decode_configs(entry)
    except DamagedObjectError as error:
        logger.error("config record damaged", key=entry.key, reason=error.reason)
        return _NONE
