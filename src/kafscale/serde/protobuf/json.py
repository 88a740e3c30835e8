"""Converts Protobuf messages to and from JSON, in Protobuf's own mapping.

Invariants: fields have the names of the definition and are shown if they are set; unknown fields
are rejected when writing and ignored when reading, as usual in Protobuf. Bytes that are not such a
message raise `InvalidRecordError`, and so does a message of more than `VALUES_MAX` values: two
bytes can encode a list element. Pure.
"""

from typing import Any, Final

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from kafscale.errors import InvalidRecordError

VALUES_MAX: Final = 100_000
_CONVERSION_ERRORS: Final = (
    json_format.Error,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
"""The errors of json_format for messages and JSON that cannot be converted."""


class MessageJson:
    """Converts one type of message."""

    __slots__ = ("_class", "_pool")

    def __init__(self, message: Descriptor) -> None:
        self._class = message_factory.GetMessageClass(message)
        self._pool: Any = message.file.pool

    def read(self, payload: bytes) -> Any:
        """Convert a message to JSON data."""
        try:
            message = self._class.FromString(payload)
        except (DecodeError, UnicodeDecodeError) as error:
            raise InvalidRecordError(f"the value does not match the message: {error}") from error
        _check_size(message, VALUES_MAX)
        try:
            return json_format.MessageToDict(
                message, preserving_proto_field_name=True, descriptor_pool=self._pool
            )
        except _CONVERSION_ERRORS as error:
            raise InvalidRecordError(f"the message cannot be converted to JSON: {error}") from error

    def write(self, value: Any) -> bytes:
        """Encode a message from JSON data; equal messages have equal bytes."""
        message = self._class()
        try:
            json_format.ParseDict(value, message, descriptor_pool=self._pool)
            return bytes(message.SerializeToString(deterministic=True))
        except _CONVERSION_ERRORS as error:
            raise InvalidRecordError(f"the value does not match the message: {error}") from error


def _check_size(message: Message, remaining: int) -> int:
    """Subtract the number of values of a message from `left`; raise if it becomes negative."""
    for field, content in message.ListFields():
        if not field.is_repeated:
            remaining = _check_size(content, remaining - 1) if field.message_type else remaining - 1
        elif field.message_type is None:
            remaining -= len(content)
        else:
            is_map = field.message_type.GetOptions().map_entry
            entries = content.values() if is_map else content
            remaining -= len(entries)
            for each in entries:
                remaining = _check_size(each, remaining) if isinstance(each, Message) else remaining
                if remaining < 0:
                    break
        if remaining < 0:
            raise InvalidRecordError(f"the value has more than {VALUES_MAX} elements")
    return remaining
