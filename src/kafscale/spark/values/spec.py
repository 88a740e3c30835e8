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
from kafscale.serde.registry.references import protobuf_set, referenced_texts
from kafscale.spark.values import ddl
from kafscale.spark.values.avro_decoder import (
    AvroDecoder,
    AvroRegistryDecoder,
    AvroSchema,
    from_registry,
)
from kafscale.spark.values.base import RawDecoder, ValueDecoder
from kafscale.spark.values.json_decoder import JsonDecoder
from kafscale.spark.values.protobuf_decoder import ProtobufDecoder, ProtobufRegistryDecoder

FORMATS: Final = ("raw", "json", "avro", "protobuf")

Sleep = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSpec:
    """The format of values, and what is known about their schema."""

    format: str = "raw"
    """One of `FORMATS`."""

    schema: str = ""
    """JSON: in Spark's DDL, see `ddl`. Avro: its JSON. Protobuf: definitions in its language."""

    references: tuple[str, ...] = ()
    """Avro: the texts of referenced schemas, deepest first."""

    descriptors: bytes = field(default=b"", repr=False)
    """Protobuf: an encoded FileDescriptorSet, instead of a schema."""

    message: str = ""
    """Protobuf: the full name of the message; the first of the last file if empty."""

    registry: RegistryAccess | None = None
    """If set, values are framed, and their schemas are requested as needed."""

    subject: str = ""
    """Avro and Protobuf: the subject of the schema in the registry, if none is given."""

    grows: bool = False
    """JSON: fields that the schema lacks become new columns; without a schema, they always do."""

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            _reject(f"unknown format {self.format}; the formats are {', '.join(FORMATS)}")
        if self.format == "raw" and (self.schema or self.registry):
            _reject("raw values have no schema")
        if self.format != "protobuf" and (self.descriptors or self.message):
            _reject(f"descriptors and messages are for protobuf, not for {self.format}")
        if self.references and not (self.format == "avro" and self.schema):
            _reject("references need an Avro schema")
        if self.grows and self.format != "json":
            _reject("only the schema of JSON values can be extended")
        if self.schema and self.descriptors:
            _reject("a schema and descriptors cannot both be given")
        if self.subject and (self.registry is None or self.format in {"raw", "json"}):
            _reject("a subject needs Avro or Protobuf, and a registry")
        if self.format in {"avro", "protobuf"} and not self._has_schema:
            _reject(f"{self.format} needs a schema or a registry")
        if self.message and not (self.schema or self.descriptors or self.subject):
            _reject("a message needs a schema, descriptors or a subject")

    @property
    def _has_schema(self) -> bool:
        return bool(self.schema or self.descriptors or self.registry)


def create_decoder(spec: ValueSpec, *, sleep: Sleep = time.sleep) -> ValueDecoder:
    """Create the decoder of a spec; `sleep` is called between attempts at the registry."""
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
            message = ProtobufFiles.from_descriptor_set(spec.descriptors).message(spec.message)
            return ProtobufDecoder(message, is_framed=registry is not None)
        assert registry is not None
        return ProtobufRegistryDecoder(registry)
    return RawDecoder()


def pin_schema(spec: ValueSpec, *, sleep: Sleep = time.sleep) -> ValueSpec:
    """Return the spec with its schema fetched and compiled; it keeps the registry."""
    if spec.format == "protobuf" and spec.schema:
        return replace(spec, schema="", descriptors=compile_source(spec.schema))
    if not spec.subject or spec.schema or spec.descriptors:
        return spec
    assert spec.registry is not None
    try:
        latest = Registry(spec.registry, sleep=sleep).latest(spec.subject)
        if spec.format == "protobuf":
            return replace(spec, descriptors=protobuf_set(latest))
        from_registry(latest)  # Raise here what every task would raise.
        return replace(spec, schema=latest.text, references=referenced_texts(latest))
    except InvalidRecordError as error:
        raise ConfigError(f"subject {spec.subject}: {error}") from error


def _reject(reason: str) -> NoReturn:
    raise ConfigError(f"invalid value format: {reason}")
