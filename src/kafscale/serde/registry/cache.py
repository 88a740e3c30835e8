"""Schemas of a registry, made ready to read with, by their ids.

The law: an id is asked for once if it is known, and once per batch if it is not, however many
records name it; by the next batch, the registry may know it.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from kafscale.errors import ConfigError, InvalidRecordError
from kafscale.serde.registry.client import RegisteredSchema, Registry

Ready = TypeVar("Ready")


class SchemaCache(Generic[Ready]):
    __slots__ = ("_prepare", "_ready", "_registry", "_useless")

    def __init__(self, registry: Registry, prepare: Callable[[RegisteredSchema], Ready]) -> None:
        self._registry = registry
        self._prepare = prepare
        self._ready: dict[int, Ready] = {}
        self._useless: dict[int, str] = {}

    def begin_batch(self) -> None:
        self._useless.clear()

    def get(self, schema_id: int) -> Ready:
        """What was made of the schema; raises an error about the record if nothing can be."""
        ready = self._ready.get(schema_id)
        if ready is not None:
            return ready
        if schema_id not in self._useless:
            try:
                registered = self._registry.schema(schema_id)
            except InvalidRecordError as error:
                self._useless[schema_id] = str(error)
            else:
                return self._get_prepared(schema_id, registered)
        raise InvalidRecordError(self._useless[schema_id])

    def _get_prepared(self, schema_id: int, registered: RegisteredSchema) -> Ready:
        # Only here is a setting that is wrong the record's: the schema is somebody else's.
        try:
            ready = self._ready[schema_id] = self._prepare(registered)
        except (ConfigError, InvalidRecordError) as error:
            self._useless[schema_id] = f"schema {schema_id}: {error}"
            raise InvalidRecordError(self._useless[schema_id]) from error
        return ready
