"""Targets of the Kafka protocol: frames, requests and responses of every API and version.

An input of `requests` is a request as it follows its length on the wire; it begins with the API key
and the version. One of `responses` is a response behind its API key and version.
"""

from collections.abc import Iterator
from random import Random

from fuzz.target import Target
from kafscale.errors import ProtocolError
from kafscale.groups import consumer_protocol
from kafscale.groups.consumer_protocol import Subscription
from kafscale.protocol import header as headers
from kafscale.protocol.api import Api
from kafscale.protocol.apis import APIS
from kafscale.protocol.codec.codec import Codec
from kafscale.protocol.frame import LENGTH, FrameReader
from services import hostile_requests

BY_KEY = {api.key: api for api in APIS}
FRAME_BYTES_MAX = 4096
VERSIONS = [(api, version) for api in APIS for version in api.versions]


# --- frames -----------------------------------------------------------------------------------


def read_frames(data: bytes) -> None:
    """Frames are the same, in whichever pieces the bytes arrive."""
    step, data = 1 + data[0] if data else 1, data[1:]
    whole = _frames(data, max(len(data), 1))
    assert _frames(data, step) == whole
    expected = b"".join(LENGTH.pack(len(frame)) + frame for frame in whole)
    assert data.startswith(expected)


def _frames(data: bytes, step: int) -> list[bytes]:
    reader = FrameReader(FRAME_BYTES_MAX)
    frames: list[bytes] = []
    for start in range(0, len(data), step):
        frames += map(bytes, reader.feed(data[start : start + step]))
    return frames


def frame_seeds() -> Iterator[bytes]:
    for size in (0, 1, 100, FRAME_BYTES_MAX):
        frame = LENGTH.pack(size) + bytes(size)
        yield b"\x03" + frame + frame
        yield b"\xff" + frame * 3 + frame[:-1]


# --- requests and responses -------------------------------------------------------------------


def decode_request(data: bytes) -> None:
    frame = memoryview(data)
    api, version = _api(frame)
    _, position = headers.decode_request_header(frame, api.request_header_version(version))
    _decode_twice(api.request_codec(version), frame, position)


def request_seeds() -> Iterator[bytes]:
    random = Random(0)
    for api, version in VERSIONS:
        yield hostile_requests.request(api, version, random)


def decode_response(data: bytes) -> None:
    frame = memoryview(data)
    api, version = _api(frame)
    frame = frame[4:]
    _, position = headers.decode_response_header(frame, api.response_header_version(version))
    _decode_twice(api.response_codec(version), frame, position)


def response_seeds() -> Iterator[bytes]:
    random = Random(0)
    for api, version in VERSIONS:
        header = headers.encode_response_header(1, api.response_header_version(version))
        message = hostile_requests.message(api.response, version, random)
        body = api.response_codec(version).encode_bytes(message)
        yield api.key.to_bytes(2) + version.to_bytes(2) + header + body


def _api(frame: memoryview) -> tuple[Api, int]:
    key, version = headers.peek_api(frame)
    if key not in BY_KEY or version not in BY_KEY[key].versions:
        raise ProtocolError("the broker does not decode such a request")
    return BY_KEY[key], version


def _decode_twice(codec: Codec, frame: memoryview, position: int) -> None:
    """What was decoded has an encoding, which is decoded to the same."""
    message, end = codec.decode_at(frame, position)
    assert end <= len(frame)
    encoded = codec.encode_bytes(message)
    assert codec.encode_bytes(codec.decode(encoded)) == encoded


# --- members of classic groups ----------------------------------------------------------------


def decode_subscription(data: bytes) -> None:
    version = min(consumer_protocol.decode_version(data), consumer_protocol.VERSION_MAX)
    found = consumer_protocol.decode_subscription(data)
    encoded = consumer_protocol.encode_subscription(found, version)
    assert consumer_protocol.decode_subscription(encoded) == found


def subscription_seeds() -> Iterator[bytes]:
    owned = (("orders", (0, 1, 2)), ("größe", ()))
    for version in range(consumer_protocol.VERSION_MAX + 1):
        found = Subscription(("orders", ""), b"data", owned, 7, "rack")
        yield consumer_protocol.encode_subscription(found, version)
        yield consumer_protocol.encode_subscription(Subscription(()), version)


def decode_assignment(data: bytes) -> None:
    found = consumer_protocol.decode_assignment(data)
    consumer_protocol.has_user_data(data)
    encoded = consumer_protocol.encode_assignment(found)
    assert consumer_protocol.decode_assignment(encoded) == found


def assignment_seeds() -> Iterator[bytes]:
    yield b""
    yield consumer_protocol.encode_assignment({})
    yield consumer_protocol.encode_assignment({"orders": [0, 1], "größe": []}, b"data", 3)


TARGETS = (
    Target("frames", read_frames, frame_seeds, (ProtocolError,)),
    Target("requests", decode_request, request_seeds, (ProtocolError,)),
    Target("responses", decode_response, response_seeds, (ProtocolError,)),
    Target("subscriptions", decode_subscription, subscription_seeds, (ProtocolError,)),
    Target("assignments", decode_assignment, assignment_seeds, (ProtocolError,)),
)
