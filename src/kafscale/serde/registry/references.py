"""Resolves a registered schema with its references, in the form that its parser needs.

Invariant: a schema of an unexpected type is an error of the record that names it, not of a setting.
Pure, except for the compiler if a registry returns Protobuf source.
"""

import base64
import binascii

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

from kafscale.errors import InvalidRecordError
from kafscale.serde.protobuf.descriptors import FileDescriptorProto
from kafscale.serde.registry.client import RegisteredSchema
from kafscale.serde.registry.protobuf_compiler import MAIN_FILE, compile_source


def avro_texts(schema: RegisteredSchema) -> tuple[str, tuple[str, ...]]:
    """Return the text of an Avro schema, and the texts of its references, deepest first."""
    if schema.kind != "AVRO":
        raise InvalidRecordError(f"expected an AVRO schema, not {schema.kind}")
    return schema.text, referenced_texts(schema)


def referenced_texts(schema: RegisteredSchema) -> tuple[str, ...]:
    """Return the texts of all references of a schema, deepest first, each once."""
    texts: dict[str, None] = {}
    for reference in schema.references:
        texts.update(dict.fromkeys(referenced_texts(reference.schema)))
        texts[reference.schema.text] = None
    return tuple(texts)


def protobuf_set(schema: RegisteredSchema) -> bytes:
    """Return an encoded FileDescriptorSet; registries return descriptors or source."""
    if schema.kind != "PROTOBUF":
        raise InvalidRecordError(f"expected a PROTOBUF schema, not {schema.kind}")
    imports = _imports(schema)
    files = {name: _descriptor(name, text) for name, text in imports.items()}
    files[MAIN_FILE] = _descriptor(MAIN_FILE, schema.text)
    known = [file for file in files.values() if file is not None]
    if len(known) < len(files):
        return compile_source(schema.text, imports)
    return descriptor_pb2.FileDescriptorSet(file=known).SerializeToString()


def _imports(schema: RegisteredSchema) -> dict[str, str]:
    texts: dict[str, str] = {}
    for reference in schema.references:
        texts.update(_imports(reference.schema))
        texts[reference.name] = reference.schema.text
    return texts


def _descriptor(name: str, text: str) -> FileDescriptorProto | None:
    """Decode the descriptor of a file and set its import name; None for source."""
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    file.name = name
    return file
