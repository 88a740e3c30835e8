"""Describes the values of a topic: built on the driver, turned into a decoder in every task.

Invariants: a spec can be pickled, and its `repr` contains no secrets; an inconsistent spec is
rejected before any record is read. `pin_schema` runs on the driver: it asks the registry and runs
the Protobuf compiler once, so that all tasks use the same schema.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from kafscale.errors import ConfigError, InvalidRecordError
from kafscale.serde.protobuf.descriptors import ProtobufFiles
from kafscale.serde.registry.client import Registry, RegistryAccess
from kafscale.serde.registry.protobuf_compiler import compile_source
from kafscale.serde.registry.references import protobuf_set, referred
from kafscale.spark.values import ddl
from kafscale.spark.values.avro_values import (
    AvroDecoder,
    AvroRegistryDecoder,
    AvroSchema,
    registered,
)
from kafscale.spark.values.base import RawDecoder, ValueDecoder
from kafscale.spark.values.json_values import JsonDecoder
from kafscale.spark.values.protobuf_values import ProtobufDecoder, ProtobufRegistryDecoder

FORMATS: Final = ("raw", "json", "avro", "protobuf")

Sleep = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSpec:
    """A format, and what is known about the schema of the values."""

    format: str = "raw"
    """One of `FORMATS`."""

    schema: str = ""
    """JSON: in Spark's DDL, see `ddl`. Avro: its JSON. Protobuf: definitions in its language."""

    references: tuple[str, ...] = ()
    """Avro: the texts of schemas that the schema refers to, deepest first."""

    descriptors: bytes = field(default=b"", repr=False)
    """Protobuf: an encoded FileDescriptorSet, instead of a schema."""

    message: str = ""
    """Protobuf: the full name of the message; the first of the last file if there is none."""

    registry: RegistryAccess | None = None
    """Where there is one, values are framed, and their schemas may be asked for."""

    subject: str = ""
    """Avro and Protobuf: where the registry has the schema to read with, if none is given."""

    grows: bool = False
    """JSON: fields that the schema lacks become new columns; without a schema, they always do."""

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            _refuse(f"{self.format} is none of {', '.join(FORMATS)}")
        if self.format == "raw" and (self.schema or self.registry):
            _refuse("raw values have no schema")
        if self.format != "protobuf" and (self.descriptors or self.message):
            _refuse(f"descriptors and messages are for protobuf, not for {self.format}")
        if self.references and not (self.format == "avro" and self.schema):
            _refuse("references are those of a schema in Avro")
        if self.grows and self.format != "json":
            _refuse("only JSON grows by itself")
        if self.schema and self.descriptors:
            _refuse("a schema and descriptors cannot both be given")
        if self.subject and (self.registry is None or self.format in {"raw", "json"}):
            _refuse("a subject is for Avro or Protobuf with a registry")
        if self.format in {"avro", "protobuf"} and not self._is_known:
            _refuse(f"{self.format} needs a schema or a registry")
        if self.message and not (self.schema or self.descriptors or self.subject):
            _refuse("a message needs a schema, descriptors or a subject to be found in")

    @property
    def _is_known(self) -> bool:
        return bool(self.schema or self.descriptors or self.registry)


def create_decoder(spec: ValueSpec, *, sleep: Sleep = time.sleep) -> ValueDecoder:
    """The decoder of such values; `sleep` is for the time between two tries of the registry."""
    spec = pin_schema(spec, sleep=sleep)
    registry = None if spec.registry is None else Registry(spec.registry, sleep=sleep)
    if spec.format == "json":
        schema = ddl.parse(spec.schema) if spec.schema else None
        return JsonDecoder(schema, grows=spec.grows, is_framed=registry is not None)
    if spec.format == "avro":
        reader = AvroSchema(spec.schema, spec.references) if spec.schema else None
        if registry is not None:
            return AvroRegistryDecoder(registry, reader)
        assert reader is not None
        return AvroDecoder(reader)
    if spec.format == "protobuf":
        if spec.descriptors:
            message = ProtobufFiles.of_set(spec.descriptors).message(spec.message)
            return ProtobufDecoder(message, is_framed=registry is not None)
        assert registry is not None
        return ProtobufRegistryDecoder(registry)
    return RawDecoder()


def pin_schema(spec: ValueSpec, *, sleep: Sleep = time.sleep) -> ValueSpec:
    """The same spec with all that has to be asked or compiled first; the registry stays in it."""
    if spec.format == "protobuf" and spec.schema:
        return replace(spec, schema="", descriptors=compile_source(spec.schema))
    if not spec.subject or spec.schema or spec.descriptors:
        return spec
    assert spec.registry is not None
    try:
        latest = Registry(spec.registry, sleep=sleep).latest(spec.subject)
        if spec.format == "protobuf":
            return replace(spec, descriptors=protobuf_set(latest))
        registered(latest)  # It raises here what it would in every task.
        return replace(spec, schema=latest.text, references=referred(latest))
    except InvalidRecordError as error:
        raise ConfigError(f"subject {spec.subject}: {error}") from error


def _refuse(reason: str) -> NoReturn:
    raise ConfigError(f"the values cannot be decoded so: {reason}")
