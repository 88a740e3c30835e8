"""Three independent implementations of the protocol, which decode bytes and encode them again.

An implementation that does not support a message or version returns None for it; the test asserts
that at least one supports it.
"""

import importlib
import io
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

import aiokafka.protocol
import kafka.protocol
import kafka.protocol.old
from kafka.protocol.api_message import ApiMessage
from kio.serial import entity_reader, entity_writer

from conformance.protocol.cases import Case

Rewrite = Callable[[bytes], bytes]

MISTAKEN = {
    ("aiokafka.protocol", "ListOffsetsRequest-v4"): "writes the leader epoch as an int64",
    ("aiokafka.protocol", "ListOffsetsRequest-v5"): "writes the leader epoch as an int64",
    ("aiokafka.protocol", "DescribeAclsRequest-v2"): "does not know that v2 is flexible",
    ("aiokafka.protocol", "DescribeAclsResponse-v2"): "does not know that v2 is flexible",
    ("kafka.protocol.old", "DescribeAclsRequest-v2"): "does not know that v2 is flexible",
    ("kafka.protocol.old", "DescribeAclsResponse-v2"): "does not know that v2 is flexible",
    ("kafka.protocol.old", "DescribeLogDirsRequest-v0"): "has one partition for an array of them",
    **{
        ("kafka.protocol.old", f"ApiVersionsResponse-v{version}"): "takes every error for a v0"
        for version in range(1, 5)
    },
}
"""Where a historic class contradicts Kafka's own definition of the version or its neighbour."""


def kio_entity(case: Case) -> Any:
    package = case.message.__module__.rpartition(".")[2]  # Both are named after the API.
    try:
        module = importlib.import_module(f"kio.schema.{package}.v{case.version}.{case.side}")
    except ModuleNotFoundError:
        return None
    return getattr(module, case.message.__name__)


def kio_rewrite(entity: Any) -> Rewrite:
    read, write = entity_reader(entity), entity_writer(entity)

    def rewrite(encoded: bytes) -> bytes:
        message, position = read(encoded, 0)
        assert position == len(encoded)
        buffer = io.BytesIO()
        write(buffer, message)
        return buffer.getvalue()

    return rewrite


def kio(case: Case) -> Rewrite | None:
    """kio: a class for each message and version of Kafka 4, read by Rust and written by Python."""
    entity = kio_entity(case)
    if entity is None:
        return None
    return kio_rewrite(entity)


def kafka_python(case: Case) -> Rewrite | None:
    """kafka-python: Kafka's own definitions, compiled when used."""
    message = _kafka_python_messages().get(case.message.__name__)
    if message is None:
        return None
    # The definitions may have lost fields of versions that Kafka dropped; not so of this one, by
    # whose notes v1 was the same as v0.
    first = 0 if case.api.name == "DescribeLogDirs" else message.valid_versions[0]
    if not first <= case.version <= message.max_version:
        return None

    def rewrite(encoded: bytes) -> bytes:
        # Past ApiVersionsResponse's own `decode`, which takes any answer with an error for a v0.
        decoded = ApiMessage.decode.__func__(message, encoded, version=case.version)
        decoded._header = None  # Writing asks for it, reading without one does not set it.
        return bytes(decoded.encode(version=case.version))

    return rewrite


def historic(library: ModuleType) -> Callable[[Case], Rewrite | None]:
    """Classes written by hand, one a version, from when the old versions were in use."""

    def reference(case: Case) -> Rewrite | None:
        message = _historic_messages(library).get((case.api.key, case.version, case.side))
        if message is None or (library.__name__, str(case)) in MISTAKEN:
            return None

        def rewrite(encoded: bytes) -> bytes:
            stream = io.BytesIO(encoded)
            decoded = message.decode(stream)
            assert stream.read() == b""
            # aiokafka structs are encoded by their schema, kafka-python structs by themselves.
            if hasattr(decoded, "encode"):
                return bytes(decoded.encode())
            return bytes(message.SCHEMA.encode(decoded))

        return rewrite

    return reference


REFERENCE_CODECS = {
    "kio": kio,
    "kafka-python": kafka_python,
    "kafka-python-old": historic(kafka.protocol.old),
    "aiokafka": historic(aiokafka.protocol),
}


@cache
def _kafka_python_messages() -> dict[str, Any]:
    for _ in _modules(kafka.protocol):
        pass  # Importing a module registers its messages.
    return {message.__name__: message for message in _subclasses(ApiMessage)}


@cache
def _historic_messages(library: ModuleType) -> dict[tuple[int, int, str], Any]:
    result = {}
    for module in _modules(library):
        for name, value in vars(module).items():
            if match := re.fullmatch(r"\w+(Request|Response)_v(\d+)", name):
                result[value.API_KEY, int(match[2]), match[1].lower()] = value
    return result


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if "generate" not in info.name:
            yield importlib.import_module(info.name)


def _subclasses(base: type) -> Iterator[type]:
    for child in base.__subclasses__():
        yield child
        yield from _subclasses(child)
