"""Random well-formed requests for any API and version, and mutations of them."""

from random import Random
from typing import Any

from kafscale.protocol import header as headers
from kafscale.protocol.api import Api
from kafscale.protocol.codec.schema import Array, Field, MessageType, WireType, fields
from kafscale.protocol.codec.wire import Message, PrimitiveType

_SPECIAL = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xff\x0f",
    bytes(4),
)
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
    body = api.request_codec(version).encode_bytes(_message(api.request, version, random))
    return written + body


def mutated(data: bytes, random: Random) -> bytes:
    """The request truncated, changed, lengthened, or with extreme numbers."""
    place = random.randrange(4, max(5, len(data)))
    match random.randrange(5):
        case 0:
            return data[:place]
        case 1:
            return data[:place] + bytes([data[place - 1] ^ 1 << random.randrange(8)]) + data[place:]
        case 2:
            special = random.choice(_SPECIAL)
            return data[:place] + special + data[place + len(special) :]
        case 3:
            return data[:place] + random.randbytes(random.randrange(40)) + data[place:]
        case _:
            changed = bytearray(data)
            for _ in range(random.randrange(1, 8)):
                changed[random.randrange(4, max(5, len(data) - 1))] = random.getrandbits(8)
            return bytes(changed)


def _message(message: MessageType, version: int, random: Random) -> Message:
    return message(
        **{result.name: _value(result, version, random) for result in fields(message, version)}
    )


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
        case PrimitiveType(name="uuid"):
            return random.randbytes(16)
        case PrimitiveType(name="bool"):
            return random.random() < 0.5
        case PrimitiveType(name="float64"):
            return random.choice([0.0, -1.0, 1e300, float("inf"), float("nan")])
        case PrimitiveType() as kind:
            return _number(kind, random)
        case inner:
            return _message(inner, version, random)


def _number(kind: PrimitiveType, random: Random) -> int:
    bits = 8 * kind.size_bytes
    lowest = 0 if kind.name.startswith("u") else -(1 << bits - 1)
    highest = (1 << bits) - 1 + lowest
    return random.choice([0, 1, 3, lowest, highest, random.randint(lowest, highest)])
