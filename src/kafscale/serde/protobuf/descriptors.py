"""Files of Protobuf definitions: descriptors that belong together, and the messages in them.

The law: a file stands on its own. Whatever it imports is beside it or is one of Google's well-known
types, which nobody ships, and it shares no pool with the rest of the process, where another version
of the same names may live.
"""

from collections.abc import Mapping
from typing import Final

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from kafscale.errors import ConfigError, InvalidRecordError

_WELL_KNOWN: Final = {
    module.DESCRIPTOR.name: module.DESCRIPTOR
    for module in (
        any_pb2,
        descriptor_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )
}

FileDescriptorProto = descriptor_pb2.FileDescriptorProto


class ProtobufFiles:
    """Some files, the last of which is the one that messages are looked for in first."""

    __slots__ = ("_last", "_pool")

    def __init__(self, files: Mapping[str, FileDescriptorProto]) -> None:
        """Take files by their names, in any order but for the last."""
        if not files:
            raise ConfigError("there are no files of Protobuf definitions")
        self._pool = descriptor_pool.DescriptorPool()
        self._last = list(files.values())[-1]
        added: set[str] = set()
        try:
            for name in files:
                self._add(name, files, added, ())
        except (TypeError, ValueError) as error:
            raise ConfigError(f"the Protobuf definitions cannot be used: {error}") from error

    @classmethod
    def of_set(cls, descriptors: bytes) -> "ProtobufFiles":
        """The files of an encoded FileDescriptorSet, as `protoc --descriptor_set_out` writes it."""
        try:
            found = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
        except DecodeError as error:
            raise ConfigError("the descriptors are no FileDescriptorSet") from error
        return cls({file.name: file for file in found.file})

    def message(self, name: str) -> Descriptor:
        """The message with this full name; without a name, the first of the last file."""
        if not name:
            return self.message_at((0,))
        try:
            found = self._pool.FindMessageTypeByName(name)
        except KeyError as error:
            raise ConfigError(f"there is no message {name} in the definitions") from error
        return found

    def message_at(self, indexes: tuple[int, ...]) -> Descriptor:
        """The message at this place of the last file, as values name it: see `frame`."""
        messages = self._last.message_type
        names = [self._last.package] if self._last.package else []
        for index in indexes:
            if not 0 <= index < len(messages):
                raise InvalidRecordError(f"there is no message at {list(indexes)} in its schema")
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return self._pool.FindMessageTypeByName(".".join(names))

    def place_of(self, message: Descriptor) -> tuple[int, ...]:
        """The counterpart of `message_at`."""
        package = f"{self._last.package}." if self._last.package else ""
        indexes = []
        messages = self._last.message_type
        for name in message.full_name.removeprefix(package).split("."):
            names = [each.name for each in messages]
            if name not in names:
                raise ConfigError(f"the message {message.full_name} is not in the last file")
            indexes.append(names.index(name))
            messages = messages[indexes[-1]].nested_type
        return tuple(indexes)

    def _add(
        self,
        name: str,
        files: Mapping[str, FileDescriptorProto],
        added: set[str],
        within: tuple[str, ...],
    ) -> None:
        """Add a file after all that it imports."""
        if name in added:
            return
        if name in within:
            raise ConfigError(f"{name} imports itself")
        file = files.get(name)
        if file is None:
            known = _WELL_KNOWN.get(name)
            if known is None:
                raise ConfigError(f"{within[-1]} imports {name}, which is not there")
            file = FileDescriptorProto()
            known.CopyToProto(file)
        for imported in file.dependency:
            self._add(imported, files, added, (*within, name))
        added.add(name)
        self._pool.AddSerializedFile(file.SerializeToString())
