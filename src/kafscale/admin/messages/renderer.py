"""Bytes made readable, as somebody asked for it, or as they seem to be meant.

`auto` shows what a registry's schema says, if bytes name one; else JSON, if they are an object or a
list; else text, if they are UTF-8 without control characters; else hex. The laws: every payload is
shown somehow, with the reason where it is not as was asked; and what is shown is cut to a number of
characters, so that a page has a size. Made for threads: it may ask a registry.
"""

import base64
import re
from typing import Any, Final, Literal, NamedTuple

import msgspec

from kafscale.admin.messages.codecs import Codecs, Decoded, typed
from kafscale.admin.messages.query import Reading
from kafscale.errors import InvalidRecordError, StoreUnavailableError
from kafscale.serde.registry import wire_format
from kafscale.serde.registry.client import UnknownSchemaError

CHARACTERS_MAX: Final = 64 * 1024
CHARACTERS_MAX_ALONE: Final = 1024 * 1024
"""For a page of one record."""

PROBLEM_CHARACTERS_MAX: Final = 500
"""Reasons come from libraries too, and some of those repeat the whole value."""

_INDENTED_BYTES_MAX: Final = 64 * 1024
"""Beyond that, JSON is shown as it came: a hundred levels make long lines of nothing."""

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NOT_JSON: Final = (msgspec.MsgspecError, RecursionError, UnicodeError)

Shown = Literal["text", "json", "hex", "base64", "avro", "protobuf"]


class Payload(NamedTuple):
    """Bytes as they are shown."""

    format: Shown
    text: str
    size_bytes: int
    is_truncated: bool
    schema_id: int | None = None
    problem: str | None = None


class Lens:
    """How keys are shown, or values."""

    __slots__ = ("_characters_max", "_codecs", "_format", "_schema")

    def __init__(
        self, reading: Reading, codecs: Codecs, characters_max: int = CHARACTERS_MAX
    ) -> None:
        self._format = reading.format
        self._schema = reading.wanted
        self._codecs = codecs
        self._characters_max = characters_max

    @property
    def shows_own_text(self) -> bool:
        """Whether all text that is shown stands in the bytes as it is."""
        return self._format in {"text", "json"} or (
            self._format == "auto" and not self._codecs.has_registry
        )

    def prepare(self) -> None:
        """Raise if the schema that was typed is none; it may have to be compiled."""
        if self._schema is not None and (self._schema.text or not self._codecs.has_registry):
            typed(self._schema)

    def show(self, payload: bytes) -> Payload:
        try:
            decoded = self._decoded(payload)
        except (InvalidRecordError, StoreUnavailableError) as error:
            return self._plain(payload, problem=str(error)[:PROBLEM_CHARACTERS_MAX])
        if decoded is not None:
            return self._json(decoded, len(payload))
        return self._as_asked(payload)

    def value(self, payload: bytes) -> Any:
        """What the bytes are as JSON; raises an `InvalidRecordError` if they are none."""
        try:
            decoded = self._decoded(payload)
            return msgspec.json.decode(payload) if decoded is None else decoded.value
        except _NOT_JSON as error:
            raise InvalidRecordError(f"it is no JSON: {error}") from error

    def _as_asked(self, payload: bytes) -> Payload:
        match self._format:
            case "text":
                return self._text(payload)
            case "hex":
                return self._hex(payload)
            case "base64":
                return self._base64(payload)
            case "json":
                problem = None if _is_json(payload) else "it is no JSON"
                return self._plain(payload, problem=problem, any_json=True)
        return self._plain(payload)

    def _decoded(self, payload: bytes) -> Decoded | None:
        """What a schema says; None where there is no need of one."""
        if self._schema is not None:
            if self._schema.text:
                return self._codecs.bare(self._schema, payload)
            decoded = self._codecs.framed(payload)
            if decoded.kind != self._schema.kind:
                raise InvalidRecordError(
                    f"schema {decoded.schema_id} is of {decoded.kind}, not {self._schema.kind}"
                )
            return decoded
        looks_framed = (
            payload[:1] == bytes([wire_format.MAGIC]) and len(payload) > wire_format.HEADER_BYTES
        )
        if self._format == "auto" and self._codecs.has_registry and looks_framed:
            try:
                return self._codecs.framed(payload)
            except UnknownSchemaError:
                return None  # It only looked as if it named a schema.
        return None

    def _json(self, decoded: Decoded, size_bytes: int) -> Payload:
        text = msgspec.json.format(msgspec.json.encode(decoded.value), indent=2).decode()
        cut = text[: self._characters_max]
        return Payload(decoded.kind, cut, size_bytes, len(cut) < len(text), decoded.schema_id)

    def _plain(
        self, payload: bytes, *, problem: str | None = None, any_json: bool = False
    ) -> Payload:
        looks_like_json = any_json or payload.lstrip()[:1] in {b"{", b"["}
        if looks_like_json and _is_json(payload):
            shown = self._text(_indented(payload))._replace(format="json", size_bytes=len(payload))
        elif _is_text(payload):
            shown = self._text(payload)
        else:
            shown = self._hex(payload)
        return shown._replace(problem=problem)

    def _text(self, payload: bytes) -> Payload:
        # A character takes four bytes at most, so that no more need be looked at.
        text = payload[: 4 * self._characters_max].decode(errors="replace")
        cut = text[: self._characters_max]
        is_truncated = len(cut) < len(text) or len(payload) > 4 * self._characters_max
        problem = None if _is_utf8(payload) else "it is not UTF-8"
        return Payload("text", cut, len(payload), is_truncated, problem=problem)

    def _hex(self, payload: bytes) -> Payload:
        part = payload[: self._characters_max // 2]
        return Payload("hex", part.hex(), len(payload), len(part) < len(payload))

    def _base64(self, payload: bytes) -> Payload:
        part = payload[: self._characters_max // 4 * 3]
        text = base64.b64encode(part).decode()
        return Payload("base64", text, len(payload), len(part) < len(payload))


def _is_json(payload: bytes) -> bool:
    try:
        msgspec.json.decode(payload, type=msgspec.Raw)  # Checked, but nothing made of it.
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
