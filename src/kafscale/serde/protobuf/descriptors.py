"""Protobuf files: sets of descriptors, and lookup of their messages.

Invariant: a set of files is self-contained. Imports are part of it or Google's well-known types,
which are not shipped with it. It has its own descriptor pool, because the default pool may have
other versions of the same names.
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
    """A set of files; the last one is the main file."""

    __slots__ = ("_main", "_pool")

    def __init__(self, files: Mapping[str, FileDescriptorProto]) -> None:
        """`files` are by name; the main file is last, the others are in any order."""
        if not files:
            raise ConfigError("the descriptor set has no files")
        self._pool = descriptor_pool.DescriptorPool()
        self._main = list(files.values())[-1]
        added: set[str] = set()
        try:
            for name in files:
                self._add(name, files, added, ())
        except (TypeError, ValueError) as error:
            raise ConfigError(f"invalid Protobuf definitions: {error}") from error

    @classmethod
    def from_descriptor_set(cls, descriptors: bytes) -> "ProtobufFiles":
        """Decode a FileDescriptorSet, as `protoc --descriptor_set_out` writes it."""
        try:
            decoded = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
        except DecodeError as error:
            raise ConfigError("the descriptors are not a FileDescriptorSet") from error
        return cls({file.name: file for file in decoded.file})

    def message(self, name: str) -> Descriptor:
        """Return the message with a full name; without a name, the first of the main file."""
        if not name:
            return self.message_at((0,))
        try:
            descriptor = self._pool.FindMessageTypeByName(name)
        except KeyError as error:
            raise ConfigError(f"there is no message {name} in the Protobuf definitions") from error
        return descriptor

    def message_at(self, indexes: tuple[int, ...]) -> Descriptor:
        """Return the message at these indexes of the main file; see `registry.wire_format`."""
        messages = self._main.message_type
        names = [self._main.package] if self._main.package else []
        for index in indexes:
            if not 0 <= index < len(messages):
                raise InvalidRecordError(f"there is no message at {list(indexes)} in the schema")
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return self._pool.FindMessageTypeByName(".".join(names))

    def indexes_of(self, message: Descriptor) -> tuple[int, ...]:
        """Return the indexes of a message; the counterpart of `message_at`."""
        package = f"{self._main.package}." if self._main.package else ""
        indexes = []
        messages = self._main.message_type
        for name in message.full_name.removeprefix(package).split("."):
            names = [each.name for each in messages]
            if name not in names:
                raise ConfigError(f"the message {message.full_name} is not in the main file")
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
        """Add a file to the pool after its imports."""
        if name in added:
            return
        if name in within:
            raise ConfigError(f"{name} imports itself")
        file = files.get(name)
        if file is None:
            known = _WELL_KNOWN.get(name)
            if known is None:
                raise ConfigError(f"{within[-1]} imports {name}, which is missing")
            file = FileDescriptorProto()
            known.CopyToProto(file)
        for imported in file.dependency:
            self._add(imported, files, added, (*within, name))
        added.add(name)
        self._pool.AddSerializedFile(file.SerializeToString())
