"""A registry's schema with all that it refers to, in the form that its kind is parsed from.

The law: a schema of another kind than the one that is wanted is the fault of the record that names
it, not of a setting. Pure, but for the compiler where a registry gives the source of Protobuf.
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
    """The text of a schema in Avro, and the texts of all that it refers to, deepest first."""
    if schema.kind != "AVRO":
        raise InvalidRecordError(f"it is of kind {schema.kind}, not AVRO")
    return schema.text, referred(schema)


def referred(schema: RegisteredSchema) -> tuple[str, ...]:
    """The texts of all that a schema refers to, deepest first, each once."""
    texts: dict[str, None] = {}
    for reference in schema.references:
        texts.update(dict.fromkeys(referred(reference.schema)))
        texts[reference.schema.text] = None
    return tuple(texts)


def protobuf_set(schema: RegisteredSchema) -> bytes:
    """An encoded FileDescriptorSet; registries give descriptors, or source text."""
    if schema.kind != "PROTOBUF":
        raise InvalidRecordError(f"it is of kind {schema.kind}, not PROTOBUF")
    imports = _imports(schema)
    files = {name: _descriptor(name, text) for name, text in imports.items()}
    files[MAIN_FILE] = _descriptor(MAIN_FILE, schema.text)
    found = [file for file in files.values() if file is not None]
    if len(found) < len(files):
        return compile_source(schema.text, imports)
    return descriptor_pb2.FileDescriptorSet(file=found).SerializeToString()


def _imports(schema: RegisteredSchema) -> dict[str, str]:
    texts: dict[str, str] = {}
    for reference in schema.references:
        texts.update(_imports(reference.schema))
        texts[reference.name] = reference.schema.text
    return texts


def _descriptor(name: str, text: str) -> FileDescriptorProto | None:
    """The descriptor of a file, under the name by which it is imported; None for source text."""
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    file.name = name
    return file
