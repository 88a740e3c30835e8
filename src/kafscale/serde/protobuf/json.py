"""Messages of Protobuf as JSON, in the mapping that Protobuf itself defines, and back.

The laws: fields have the names of the definition, and are shown if they were set; what the
message does not have is refused on the way in, and ignored on the way out, as everywhere in
Protobuf. Bytes that are no such message raise an error about the record, and so does a message
of more than `VALUES_MAX` values: two bytes suffice for an element of a list. Pure.
"""

from typing import Any, Final

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from kafscale.errors import InvalidRecordError

VALUES_MAX: Final = 100_000
_NO_JSON: Final = (
    json_format.Error,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
"""How json_format says that there is no JSON for a message, or no message for some JSON."""


class MessageJson:
    """One message, both ways."""

    __slots__ = ("_class", "_pool")

    def __init__(self, message: Descriptor) -> None:
        self._class = message_factory.GetMessageClass(message)
        self._pool: Any = message.file.pool

    def read(self, payload: bytes) -> Any:
        """What a message is in JSON, as an object."""
        try:
            message = self._class.FromString(payload)
        except (DecodeError, UnicodeDecodeError) as error:
            raise InvalidRecordError(f"it is not the message: {error}") from error
        _count(message, VALUES_MAX)
        try:
            return json_format.MessageToDict(
                message, preserving_proto_field_name=True, descriptor_pool=self._pool
            )
        except _NO_JSON as error:
            raise InvalidRecordError(f"it has no form in JSON: {error}") from error

    def write(self, value: Any) -> bytes:
        """The bytes of a message that JSON describes; the same message has the same bytes."""
        message = self._class()
        try:
            json_format.ParseDict(value, message, descriptor_pool=self._pool)
            return bytes(message.SerializeToString(deterministic=True))
        except _NO_JSON as error:
            raise InvalidRecordError(f"it is not the message: {error}") from error


def _count(message: Message, left: int) -> int:
    """How many values may still come after those of a message."""
    for field, content in message.ListFields():
        if not field.is_repeated:
            left = _count(content, left - 1) if field.message_type else left - 1
        elif field.message_type is None:
            left -= len(content)
        else:
            is_map = field.message_type.GetOptions().map_entry
            entries = content.values() if is_map else content
            left -= len(entries)
            for each in entries:
                left = _count(each, left) if isinstance(each, Message) else left
                if left < 0:
                    break
        if left < 0:
            raise InvalidRecordError(f"it holds more than {VALUES_MAX} values")
    return left
