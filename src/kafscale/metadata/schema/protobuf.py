"""Reading protobuf messages out of entries of the store.

The law: what is not the message that it should be is a `DamagedObjectError` that names the key,
whoever wrote it.
"""

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from kafscale.errors import DamagedObjectError
from kafscale.metadata.schema.timestamps import parse_time
from kafscale.metadata.store.base import Entry

AnyMessage = TypeVar("AnyMessage", bound=Message)


def parse_message(message: AnyMessage, entry: Entry) -> AnyMessage:
    """Fill an empty message with the value of an entry."""
    try:
        message.ParseFromString(entry.value)
    except DecodeError as error:
        name = type(message).__name__
        raise DamagedObjectError(entry.key, f"not a {name} message") from error
    return message


def read_time(entry: Entry, text: str) -> int:
    """A time in a message, in milliseconds; 0 where there is none."""
    try:
        return parse_time(text) if text else 0
    except ValueError as error:
        raise DamagedObjectError(entry.key, f"not a time: {text!r}") from error
