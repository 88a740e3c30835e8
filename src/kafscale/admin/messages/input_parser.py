"""Encodes payloads that a user entered; the counterpart of `renderer`.

Input that is not in the stated format is rejected with a reason, before anything is written.
"""

import base64
import binascii
from typing import Literal

import msgspec

from kafscale.admin.messages.codecs import SchemaCodecs
from kafscale.admin.messages.query import SchemaText, schema_for
from kafscale.errors import InvalidRecordError, InvalidRequestError

InputFormat = Literal["text", "json", "hex", "base64", "avro", "protobuf"]


class PayloadInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key or a value as entered."""

    text: str
    format: InputFormat = "text"
    schema: SchemaText | None = None


def encode_input(payload: PayloadInput, codecs: SchemaCodecs, subject: str) -> bytes:
    """The bytes of a payload; without a schema, the registry's latest of the subject is used."""
    schema = schema_for(payload.format, payload.schema)
    if schema is None:
        return _plain_bytes(payload)
    try:
        value = msgspec.json.decode(payload.text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise InvalidRequestError(
            f"a payload in {payload.format} must be given as JSON: {error}"
        ) from None
    try:
        return codecs.encode(schema, subject, value)
    except InvalidRecordError as error:
        raise InvalidRequestError(str(error)) from error


def _plain_bytes(payload: PayloadInput) -> bytes:
    try:
        match payload.format:
            case "json":
                msgspec.json.decode(payload.text, type=msgspec.Raw)
            case "hex":
                return bytes.fromhex(payload.text)
            case "base64":
                return base64.b64decode("".join(payload.text.split()), validate=True)
        return payload.text.encode()
    except (msgspec.MsgspecError, RecursionError, binascii.Error, ValueError) as error:
        raise InvalidRequestError(f"invalid {payload.format}: {error}") from None
