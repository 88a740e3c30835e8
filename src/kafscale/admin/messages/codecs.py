"""Schemas made ready to read and write with: those that were typed, and those of a registry.

The laws: a schema that was typed and is none is the fault of who typed it; one that a registry
gives is the record's, and told beside it. A registry that does not answer is asked once a question,
so that a page of five hundred records does not wait five hundred times. It is asked from threads.
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
"""Bytes that only look as if they named a schema name many."""

_REGISTRIES_MAX: Final = 4
_READY_MAX: Final = 1000
_ATTEMPTS_MAX: Final = 2
_TIMEOUT_SECONDS: Final = 3.0

Kind = Literal["avro", "protobuf", "json"]


class Codec(NamedTuple):
    """Bytes to what JSON can say, and back."""

    kind: Kind
    read: Callable[[bytes], Any]
    write: Callable[[Any, str], bytes]
    """The name is that of a message, where the kind has several."""


class Decoded(NamedTuple):
    kind: Kind
    schema_id: int | None
    value: Any


class Codecs:
    """What one question needs of schemas."""

    def __init__(self, known: "RegistryCodecs | None" = None) -> None:
        self._known = known
        self._useless: dict[int, InvalidRecordError] = {}
        self._silence: str | None = None

    @property
    def has_registry(self) -> bool:
        return self._known is not None

    def apart(self) -> "Codecs":
        """The same for bytes of another kind: what those only seem to name is no matter here."""
        return Codecs(self._known)

    def framed(self, payload: bytes) -> Decoded:
        """What bytes say that name their schema."""
        _check_size(payload)
        schema_id, rest = wire_format.split(payload)
        codec = self._registered(schema_id)
        return Decoded(codec.kind, schema_id, codec.read(rest))

    def bare(self, schema: SchemaText, payload: bytes) -> Decoded:
        """What bytes say in a schema that was typed; a frame before them does no harm."""
        _check_size(payload)
        codec = typed(schema)
        try:
            return Decoded(codec.kind, None, codec.read(payload))
        except InvalidRecordError:
            if payload[:1] != bytes([wire_format.MAGIC]) or len(payload) < wire_format.HEADER_BYTES:
                raise
            schema_id, rest = wire_format.split(payload)
            if codec.kind == "protobuf":
                _, rest = wire_format.split_indexes(rest)
            return Decoded(codec.kind, schema_id, codec.read(rest))

    def encoded(self, schema: SchemaText, subject: str, value: Any) -> bytes:
        """A value in the schema that was typed, or framed in the newest of a subject."""
        if schema.text:
            return typed(schema).write(value, schema.message)
        if self._known is None:
            raise InvalidRequestError(_NO_REGISTRY)
        try:
            schema_id, codec = self._known.latest(subject)
        except ConfigError as error:
            raise InvalidRequestError(f"{error}: give the schema instead") from error
        if codec.kind != schema.kind:
            raise InvalidRequestError(
                f"the subject {subject} is of {codec.kind}, not {schema.kind}"
            )
        return wire_format.join(schema_id, codec.write(value, schema.message))

    def _registered(self, schema_id: int) -> Codec:
        if self._known is None:
            raise InvalidRecordError(_NO_REGISTRY)
        if self._silence is not None:
            raise StoreUnavailableError(self._silence)
        useless = self._useless.get(schema_id)
        if useless is not None:
            raise type(useless)(*useless.args)
        if len(self._useless) >= UNKNOWN_IDS_MAX and not self._known.has(schema_id):
            raise UnknownSchemaError(f"schema {schema_id} is not asked for: too many are unknown")
        try:
            return self._known.get(schema_id)
        except StoreUnavailableError as error:
            self._silence = str(error)
            raise
        except UnknownSchemaError as error:
            self._useless[schema_id] = error
            raise
        except KafscaleError as error:
            useless = InvalidRecordError(f"schema {schema_id}: {error}")
            self._useless[schema_id] = useless
            raise useless from error


def configured(config: Config) -> Codecs:
    """What is known of schemas, for one question: those of the registry that the settings name."""
    url = config.ui.schema_registry_url
    return Codecs(registry_at(url) if url else None)


class RegistryCodecs:
    """The schemas of a registry that were used already: all questions share them."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._ready: dict[int, Codec] = {}

    def has(self, schema_id: int) -> bool:
        return schema_id in self._ready

    def get(self, schema_id: int) -> Codec:
        codec = self._ready.get(schema_id)
        if codec is None:
            codec = self._remembered(schema_id, self._registry.schema(schema_id))
        return codec

    def latest(self, subject: str) -> tuple[int, Codec]:
        schema_id, schema = self._registry.latest_with_id(subject)
        return schema_id, self._ready.get(schema_id) or self._remembered(schema_id, schema)

    def _remembered(self, schema_id: int, schema: RegisteredSchema) -> Codec:
        codec = _of_registry(schema)
        if len(self._ready) < _READY_MAX:
            self._ready[schema_id] = codec
        return codec


@lru_cache(_REGISTRIES_MAX)
def registry_at(url: str) -> RegistryCodecs:
    """What is known of the registry there; somebody waits, so it has little time to answer."""
    access = RegistryAccess(url=url)
    return RegistryCodecs(
        Registry(access, attempts_max=_ATTEMPTS_MAX, timeout_seconds=_TIMEOUT_SECONDS)
    )


@lru_cache(32)
def typed(schema: SchemaText) -> Codec:
    """The codec of a schema that somebody typed."""
    if not schema.text:
        raise InvalidRequestError(_NO_REGISTRY)
    try:
        if schema.kind == "avro":
            return _of_avro(avro_schema.parse(schema.text))
        files = ProtobufFiles.of_set(compile_source(schema.text))
        message = MessageJson(files.message(schema.message))
    except (ConfigError, InvalidRecordError) as error:
        raise InvalidRequestError(str(error)) from error
    return Codec("protobuf", message.read, lambda value, _: message.write(value))


def _of_registry(schema: RegisteredSchema) -> Codec:
    match schema.kind:
        case "AVRO":
            text, references = registry_references.avro_texts(schema)
            return _of_avro(avro_schema.parse(text, references))
        case "PROTOBUF":
            return _of_protobuf(ProtobufFiles.of_set(registry_references.protobuf_set(schema)))
        case "JSON":
            return Codec("json", _read_json, lambda value, _: msgspec.json.encode(value))
    raise InvalidRecordError(f"it is of kind {schema.kind}, which nobody here reads")


def _of_avro(schema: AvroSchema) -> Codec:
    return Codec(
        "avro",
        lambda payload: reader.read(schema, payload),
        lambda value, _: writer.write(schema, value),
    )


def _of_protobuf(files: ProtobufFiles) -> Codec:
    def read(payload: bytes) -> Any:
        indexes, rest = wire_format.split_indexes(payload)
        return MessageJson(files.message_at(indexes)).read(rest)

    def write(value: Any, name: str) -> bytes:
        message = files.message(name)
        return wire_format.join_indexes(files.place_of(message), MessageJson(message).write(value))

    return Codec("protobuf", read, write)


def _read_json(payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise InvalidRecordError(f"it is no JSON: {error}") from error


def _check_size(payload: bytes) -> None:
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise InvalidRecordError(f"{len(payload)} bytes are too many to be read with a schema")


_NO_REGISTRY: Final = (
    "no schema is given, and no schema registry is set: give the schema, or set"
    " KAFSCALE_SCHEMA_REGISTRY_URL"
)
