"""Renders payloads as text, in a requested format or a detected one.

`auto` uses the registry's schema if the bytes are framed; else JSON if they are an object or a
list; else text if they are UTF-8 without control characters; else hex. Every payload is rendered
somehow, with a problem if it is not in the requested format, and is truncated to a number of
characters. Rendering may block on a registry; call it from threads.
"""

import base64
import re
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from kafscale.admin.messages.codecs import Decoded, SchemaCodecs, inline_codec
from kafscale.admin.messages.query import DisplayFormat
from kafscale.errors import InvalidRecordError, StoreUnavailableError
from kafscale.serde.registry import wire_format
from kafscale.serde.registry.client import UnknownSchemaError

CHARACTERS_MAX: Final = 64 * 1024
CHARACTERS_MAX_ALONE: Final = 1024 * 1024
"""For a page of one record."""

PROBLEM_CHARACTERS_MAX: Final = 500
"""Some libraries repeat the whole value in their messages."""

_INDENTED_BYTES_MAX: Final = 64 * 1024
"""Larger JSON is not indented: deep nesting would make it much longer."""

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NOT_JSON: Final = (msgspec.MsgspecError, RecursionError, UnicodeError)

RenderedFormat = Literal["text", "json", "hex", "base64", "avro", "protobuf"]


class RenderedPayload(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A payload as text."""

    format: RenderedFormat
    text: str
    size_bytes: int
    is_truncated: bool
    schema_id: int | None = None
    problem: str | None = None
    """Why it could not be decoded as requested."""


class PayloadRenderer:
    """Renders keys, or values."""

    __slots__ = ("_characters_max", "_codecs", "_format", "_schema")

    def __init__(
        self, display: DisplayFormat, codecs: SchemaCodecs, characters_max: int = CHARACTERS_MAX
    ) -> None:
        self._format = display.format
        self._schema = display.required_schema
        self._codecs = codecs
        self._characters_max = characters_max

    @property
    def is_verbatim(self) -> bool:
        """True if all rendered text occurs literally in the bytes."""
        return self._format in {"text", "json"} or (
            self._format == "auto" and not self._codecs.has_registry
        )

    def prepare(self) -> None:
        """Compile the inline schema; raise an error if it is invalid."""
        if self._schema is not None and (self._schema.text or not self._codecs.has_registry):
            inline_codec(self._schema)

    def render(self, payload: bytes) -> RenderedPayload:
        try:
            decoded = self._decode(payload)
        except (InvalidRecordError, StoreUnavailableError) as error:
            return self._plain(payload, problem=str(error)[:PROBLEM_CHARACTERS_MAX])
        if decoded is not None:
            return self._json(decoded, len(payload))
        return self._render_as_requested(payload)

    def parse_json(self, payload: bytes) -> Any:
        """The JSON value of a payload; raises `InvalidRecordError` if it is not JSON."""
        try:
            decoded = self._decode(payload)
            return msgspec.json.decode(payload) if decoded is None else decoded.value
        except _NOT_JSON as error:
            raise InvalidRecordError(f"not valid JSON: {error}") from error

    def _render_as_requested(self, payload: bytes) -> RenderedPayload:
        match self._format:
            case "text":
                return self._text(payload)
            case "hex":
                return self._hex(payload)
            case "base64":
                return self._base64(payload)
            case "json":
                problem = None if _is_json(payload) else "not valid JSON"
                return self._plain(payload, problem=problem, any_json=True)
        return self._plain(payload)

    def _decode(self, payload: bytes) -> Decoded | None:
        """Decode with a schema; None if no schema is needed."""
        if self._schema is not None:
            if self._schema.text:
                return self._codecs.decode_bare(self._schema, payload)
            decoded = self._codecs.decode_framed(payload)
            if decoded.kind != self._schema.kind:
                raise InvalidRecordError(
                    f"schema {decoded.schema_id} has type {decoded.kind}, not {self._schema.kind}"
                )
            return decoded
        is_framed = (
            payload[:1] == bytes([wire_format.MAGIC]) and len(payload) > wire_format.HEADER_BYTES
        )
        if self._format == "auto" and self._codecs.has_registry and is_framed:
            try:
                return self._codecs.decode_framed(payload)
            except UnknownSchemaError:
                return None  # The bytes only look like a frame.
        return None

    def _json(self, decoded: Decoded, size_bytes: int) -> RenderedPayload:
        text = msgspec.json.format(msgspec.json.encode(decoded.value), indent=2).decode()
        cut = text[: self._characters_max]
        return RenderedPayload(
            decoded.kind, cut, size_bytes, len(cut) < len(text), decoded.schema_id
        )

    def _plain(
        self, payload: bytes, *, problem: str | None = None, any_json: bool = False
    ) -> RenderedPayload:
        looks_like_json = any_json or payload.lstrip()[:1] in {b"{", b"["}
        if looks_like_json and _is_json(payload):
            rendered = replace(
                self._text(_indented(payload)), format="json", size_bytes=len(payload)
            )
        elif _is_text(payload):
            rendered = self._text(payload)
        else:
            rendered = self._hex(payload)
        return replace(rendered, problem=problem)

    def _text(self, payload: bytes) -> RenderedPayload:
        # A character takes at most four bytes, so the rest need not be decoded.
        text = payload[: 4 * self._characters_max].decode(errors="replace")
        cut = text[: self._characters_max]
        is_truncated = len(cut) < len(text) or len(payload) > 4 * self._characters_max
        problem = None if _is_utf8(payload) else "not valid UTF-8"
        return RenderedPayload("text", cut, len(payload), is_truncated, problem=problem)

    def _hex(self, payload: bytes) -> RenderedPayload:
        part = payload[: self._characters_max // 2]
        return RenderedPayload("hex", part.hex(), len(payload), len(part) < len(payload))

    def _base64(self, payload: bytes) -> RenderedPayload:
        part = payload[: self._characters_max // 4 * 3]
        text = base64.b64encode(part).decode()
        return RenderedPayload("base64", text, len(payload), len(part) < len(payload))


def _is_json(payload: bytes) -> bool:
    try:
        msgspec.json.decode(payload, type=msgspec.Raw)  # Validated without building objects.
    except _NOT_JSON:
        return False
    return _is_utf8(payload)


def _indented(payload: bytes) -> bytes:
    if len(payload) > _INDENTED_BYTES_MAX:
        return payload
    return msgspec.json.format(payload, indent=2)


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_text(payload: bytes) -> bool:
    try:
        return _CONTROLS.search(payload.decode()) is None
    except UnicodeDecodeError:
        return False
