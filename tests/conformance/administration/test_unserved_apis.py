"""Requests that no server of Kafka 4.1 can answer: both servers close the connection."""

import struct

import pytest

from conformance.administration.conftest import START_S_MAX
from kafscale.protocol import header as headers
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.api_versions import API_VERSIONS
from services.wire import Wire

pytestmark = pytest.mark.timeout(START_S_MAX)

METADATA, HEARTBEAT, CLIENT_ID = 3, 12, b"wire"


def request(key, version, body=b"", *, flexible=False):
    """A request with a frame length and a header."""
    tags = b"\0" if flexible else b""
    frame = struct.pack(">hhih", key, version, 7, len(CLIENT_ID)) + CLIENT_ID + tags + body
    return struct.pack(">i", len(frame)) + frame


UNANSWERED = {
    "unknown API": request(999, 0),
    "negative API": request(-1, 0),
    "LeaderAndIsr, which Kafka 4 removed": request(4, 0),
    "BrokerHeartbeat, an API of controllers": request(63, 0, b"\0", flexible=True),
    "a version too new": request(METADATA, 14, flexible=True),
    "Produce, a version too new": request(0, 14, flexible=True),
    "a negative version": request(METADATA, -1),
    "an array of two billion topics": request(METADATA, 1, b"\x7f\xff\xff\xff"),
    "a truncated string": request(HEARTBEAT, 0, b"\0\x09a"),
    "an API version, and no more": struct.pack(">ihh", 4, METADATA, 1),
    "an empty frame": struct.pack(">i", 0),
}


@pytest.mark.parametrize("data", UNANSWERED.values(), ids=UNANSWERED)
def test_connection_is_closed(ports, data):
    for port in ports:
        with Wire(port) as wire:
            wire.socket.sendall(data)
            assert wire.is_closed_by_broker()


@pytest.mark.parametrize("version", [-1, 99])
def test_unknown_version_of_api_versions_is_answered_in_version_0(ports, version):
    for port in ports:
        with Wire(port) as wire:
            wire.socket.sendall(request(API_VERSIONS.key, version, flexible=True))
            response = wire.receive_frame()
            _, position = headers.decode_response_header(response, 0)
            message, end = API_VERSIONS.response_codec(0).decode_at(response, position)
            assert end == len(response)
            assert message.error_code == ErrorCode.UNSUPPORTED_VERSION
            [own] = [api for api in message.apis if api.key == API_VERSIONS.key]
            assert (own.version_min, own.version_max) == (0, API_VERSIONS.version_max)
