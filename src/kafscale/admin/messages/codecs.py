"""Codecs for payloads with schemas: given inline with a query, or from a schema registry.

Invariants: an invalid inline schema is an error of the request. An invalid registered schema is a
problem of the record, and is shown beside it. A registry that does not respond is called once per
query, so that a page of 500 records does not wait 500 times. All methods may block; call them from
threads.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import msgspec

from kafscale.admin.messages.query import SchemaText
from kafscale.config import Config
from kafscale.errors import (
    ConfigError,
    InvalidRecordError,
    InvalidRequestError,
    KafscaleError,
    StoreUnavailableError,
)
from kafscale.serde.avro import reader, writer
from kafscale.serde.avro import schema as avro_schema
from kafscale.serde.avro.schema import AvroSchema
from kafscale.serde.protobuf.descriptors import ProtobufFiles
from kafscale.serde.protobuf.json import MessageJson
from kafscale.serde.registry import references as registry_references
from kafscale.serde.registry import wire_format
from kafscale.serde.registry.client import (
    RegisteredSchema,
    Registry,
    RegistryAccess,
    UnknownSchemaError,
)
from kafscale.serde.registry.protobuf_compiler import compile_source

PAYLOAD_BYTES_MAX: Final = 4 * 1024 * 1024
UNKNOWN_IDS_MAX: Final = 16
"""Payloads that only happen to start like framed ones contain many random ids."""

_REGISTRIES_MAX: Final = 4
_CODECS_MAX: Final = 1000
_ATTEMPTS_MAX: Final = 2
_TIMEOUT_SECONDS: Final = 3.0

SchemaKind = Literal["avro", "protobuf", "json"]


class Codec(NamedTuple):
    """Decodes bytes to a JSON value, and encodes it."""

    kind: SchemaKind
    read: Callable[[bytes], Any]
    write: Callable[[Any, str], bytes]
    """The name is that of the message, for schemas with several."""


class Decoded(NamedTuple):
    kind: SchemaKind
    schema_id: int | None
    value: Any


class SchemaCodecs:
    """The codecs of one query."""

    def __init__(self, registry: "RegistryCodecs | None" = None) -> None:
        self._registry = registry
        self._unusable: dict[int, InvalidRecordError] = {}
        self._unavailable_reason: str | None = None

    @property
    def has_registry(self) -> bool:
        return self._registry is not None

    def for_other_payloads(self) -> "SchemaCodecs":
        """Codecs with the same registry, and a separate count of unknown ids."""
        return SchemaCodecs(self._registry)

    def decode_framed(self, payload: bytes) -> Decoded:
        """Decode a payload that names its schema."""
        _check_size(payload)
        schema_id, rest = wire_format.split(payload)
        codec = self._registry_codec(schema_id)
        return Decoded(codec.kind, schema_id, codec.read(rest))

    def decode_bare(self, schema: SchemaText, payload: bytes) -> Decoded:
        """Decode a payload with an inline schema; a frame before it is allowed."""
        _check_size(payload)
        codec = inline_codec(schema)
        try:
            return Decoded(codec.kind, None, codec.read(payload))
        except InvalidRecordError:
            if payload[:1] != bytes([wire_format.MAGIC]) or len(payload) < wire_format.HEADER_BYTES:
                raise
            schema_id, rest = wire_format.split(payload)
            if codec.kind == "protobuf":
                _, rest = wire_format.split_indexes(rest)
            return Decoded(codec.kind, schema_id, codec.read(rest))

    def encode(self, schema: SchemaText, subject: str, value: Any) -> bytes:
        """Encode a value with an inline schema, or framed with the latest of a subject."""
        if schema.text:
            return inline_codec(schema).write(value, schema.message)
        if self._registry is None:
            raise InvalidRequestError(_NO_REGISTRY)
        try:
            schema_id, codec = self._registry.latest(subject)
        except ConfigError as error:
            raise InvalidRequestError(f"{error}; give a schema instead") from error
        if codec.kind != schema.kind:
            raise InvalidRequestError(
                f"subject {subject} has a schema of type {codec.kind}, not {schema.kind}"
            )
        return wire_format.join(schema_id, codec.write(value, schema.message))

    def _registry_codec(self, schema_id: int) -> Codec:
        if self._registry is None:
            raise InvalidRecordError(_NO_REGISTRY)
        if self._unavailable_reason is not None:
            raise StoreUnavailableError(self._unavailable_reason)
        unusable = self._unusable.get(schema_id)
        if unusable is not None:
            raise type(unusable)(*unusable.args)
        if len(self._unusable) >= UNKNOWN_IDS_MAX and not self._registry.has(schema_id):
            raise UnknownSchemaError(
                f"schema {schema_id} was not looked up: too many unknown schema ids"
            )
        try:
            return self._registry.get(schema_id)
        except StoreUnavailableError as error:
            self._unavailable_reason = str(error)
            raise
        except UnknownSchemaError as error:
            self._unusable[schema_id] = error
            raise
        except KafscaleError as error:
            unusable = InvalidRecordError(f"schema {schema_id}: {error}")
            self._unusable[schema_id] = unusable
            raise unusable from error


def from_config(config: Config) -> SchemaCodecs:
    """The codecs for one query, with the registry of the settings."""
    url = config.ui.schema_registry_url
    return SchemaCodecs(registry_codecs(url) if url else None)


class RegistryCodecs:
    """Cached codecs of a registry, shared by all queries."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._codecs: dict[int, Codec] = {}

    def has(self, schema_id: int) -> bool:
        return schema_id in self._codecs

    def get(self, schema_id: int) -> Codec:
        codec = self._codecs.get(schema_id)
        if codec is None:
            codec = self._add(schema_id, self._registry.schema(schema_id))
        return codec

    def latest(self, subject: str) -> tuple[int, Codec]:
        schema_id, schema = self._registry.latest_with_id(subject)
        return schema_id, self._codecs.get(schema_id) or self._add(schema_id, schema)

    def _add(self, schema_id: int, schema: RegisteredSchema) -> Codec:
        codec = _registered_codec(schema)
        if len(self._codecs) < _CODECS_MAX:
            self._codecs[schema_id] = codec
        return codec


@lru_cache(_REGISTRIES_MAX)
def registry_codecs(url: str) -> RegistryCodecs:
    """The codecs of a registry; with short timeouts, as a user is waiting."""
    access = RegistryAccess(url=url)
    return RegistryCodecs(
        Registry(access, attempts_max=_ATTEMPTS_MAX, timeout_seconds=_TIMEOUT_SECONDS)
    )


@lru_cache(32)
def inline_codec(schema: SchemaText) -> Codec:
    if not schema.text:
        raise InvalidRequestError(_NO_REGISTRY)
    try:
        if schema.kind == "avro":
            return _avro_codec(avro_schema.parse(schema.text))
        files = ProtobufFiles.from_descriptor_set(compile_source(schema.text))
        message = MessageJson(files.message(schema.message))
    except (ConfigError, InvalidRecordError) as error:
        raise InvalidRequestError(str(error)) from error
    return Codec("protobuf", message.read, lambda value, _: message.write(value))


def _registered_codec(schema: RegisteredSchema) -> Codec:
    match schema.kind:
        case "AVRO":
            text, references = registry_references.avro_texts(schema)
            return _avro_codec(avro_schema.parse(text, references))
        case "PROTOBUF":
            return _protobuf_codec(
                ProtobufFiles.from_descriptor_set(registry_references.protobuf_set(schema))
            )
        case "JSON":
            return Codec("json", _read_json, lambda value, _: msgspec.json.encode(value))
    raise InvalidRecordError(f"unsupported schema type {schema.kind}")


def _avro_codec(schema: AvroSchema) -> Codec:
    return Codec(
        "avro",
        lambda payload: reader.read(schema, payload),
        lambda value, _: writer.write(schema, value),
    )


def _protobuf_codec(files: ProtobufFiles) -> Codec:
    def read(payload: bytes) -> Any:
        indexes, rest = wire_format.split_indexes(payload)
        return MessageJson(files.message_at(indexes)).read(rest)

    def write(value: Any, name: str) -> bytes:
        message = files.message(name)
        return wire_format.join_indexes(
            files.indexes_of(message), MessageJson(message).write(value)
        )

    return Codec("protobuf", read, write)


def _read_json(payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise InvalidRecordError(f"not valid JSON: {error}") from error


def _check_size(payload: bytes) -> None:
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise InvalidRecordError(f"{len(payload)} bytes are too many to decode with a schema")


_NO_REGISTRY: Final = (
    "no schema is given, and no schema registry is set: give the schema, or set"
    " KAFSCALE_SCHEMA_REGISTRY_URL"
)
