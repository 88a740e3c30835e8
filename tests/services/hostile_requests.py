"""Random well-formed requests for any API and version, and mutations of them."""

from random import Random
from typing import Any

from kafscale.protocol import header as headers
from kafscale.protocol.api import Api
from kafscale.protocol.codec.schema import Array, Field, MessageType, WireType, fields
from kafscale.protocol.codec.wire import Message, PrimitiveType
from services import mutation

_TEXTS = (
    "",
    "topic",
    "a" * 300,
    "\x00",
    "../..",
    "\x1b[2J\n",
    "ümläut",
    "%s{}",
    "__consumer_offsets",
)


def request(api: Api[Any, Any], version: int, random: Random) -> bytes:
    """A request with random field values, without the frame length."""
    header = headers.RequestHeader(api.key, version, random.getrandbits(31), "hostile")
    written = headers.encode_request_header(header, api.request_header_version(version))
    body = api.request_codec(version).encode_bytes(message(api.request, version, random))
    return written + body


def mutated(data: bytes, random: Random) -> bytes:
    """The request with a mutation behind its API key and version."""
    return mutation.mutated(data, random, start=4)


def message(kind: MessageType, version: int, random: Random) -> Message:
    """A message with random field values."""
    return kind(**{each.name: _value(each, version, random) for each in fields(kind, version)})


def _value(field: Field, version: int, random: Random) -> Any:
    if field.nullable and random.random() < 0.2:
        return None
    return _of_type(field.type, version, random)


def _of_type(wire_type: WireType, version: int, random: Random) -> Any:
    match wire_type:
        case Array(element):
            return [_of_type(element, version, random) for _ in range(random.randrange(3))]
        case PrimitiveType(name="string"):
            return random.choice(_TEXTS)
        case PrimitiveType(name="bytes"):
            return random.randbytes(random.randrange(50))
        case PrimitiveType(name="records"):
            return memoryview(random.randbytes(random.randrange(200)))
        case PrimitiveType(name="record_slices"):
            return [memoryview(random.randbytes(random.randrange(200)))]
        case PrimitiveType(name="uuid"):
            return random.randbytes(16)
        case PrimitiveType(name="bool"):
            return random.random() < 0.5
        case PrimitiveType(name="float64"):
            return random.choice([0.0, -1.0, 1e300, float("inf"), float("nan")])
        case PrimitiveType() as kind:
            return _number(kind, random)
        case inner:
            return message(inner, version, random)


def _number(kind: PrimitiveType, random: Random) -> int:
    bits = 8 * kind.size_bytes
    lowest = 0 if kind.name.startswith("u") else -(1 << bits - 1)
    highest = (1 << bits) - 1 + lowest
    return random.choice([0, 1, 3, lowest, highest, random.randint(lowest, highest)])
