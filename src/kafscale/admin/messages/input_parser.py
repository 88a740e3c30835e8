"""Bytes of what somebody typed: the counterpart of `lens`.

The law: what is not what it is said to be is refused with a reason, and nothing is written.
"""

import base64
import binascii
from typing import Literal

import msgspec

from kafscale.admin.messages.codecs import Codecs
from kafscale.admin.messages.query import SchemaText, schema_for
from kafscale.errors import InvalidRecordError, InvalidRequestError

TypedFormat = Literal["text", "json", "hex", "base64", "avro", "protobuf"]


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """A key or a value as it was typed."""

    text: str
    format: TypedFormat = "text"
    schema: SchemaText | None = None


def bytes_of(typed: Typed, codecs: Codecs, subject: str) -> bytes:
    """The bytes that are meant; a registry may know the schema, under the name of a subject."""
    schema = schema_for(typed.format, typed.schema)
    if schema is None:
        return _plain_bytes(typed)
    try:
        value = msgspec.json.decode(typed.text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise InvalidRequestError(
            f"a value of {typed.format} is written as JSON, and this is none: {error}"
        ) from None
    try:
        return codecs.encoded(schema, subject, value)
    except InvalidRecordError as error:
        raise InvalidRequestError(str(error)) from error


def _plain_bytes(typed: Typed) -> bytes:
    try:
        match typed.format:
            case "json":
                msgspec.json.decode(typed.text, type=msgspec.Raw)
            case "hex":
                return bytes.fromhex(typed.text)
            case "base64":
                return base64.b64decode("".join(typed.text.split()), validate=True)
        return typed.text.encode()
    except (msgspec.MsgspecError, RecursionError, binascii.Error, ValueError) as error:
        raise InvalidRequestError(f"the text is not {typed.format}: {error}") from None
