"""Before a login, the broker answers only ApiVersions, SaslHandshake and SaslAuthenticate."""

import struct

import pytest

from kafscale.protocol import header as headers
from kafscale.protocol.apis import BY_KEY
from kafscale.protocol.frame import frame
from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from services.secured_wire import SecuredWire

pytestmark = pytest.mark.timeout(180)  # All keys take a minute on a busy machine.

OPEN = {API_VERSIONS.key, SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key}
KEYS = [key for key in range(101) if key not in OPEN]
REPRESENTATIVE_KEYS = [0, 3, 19, 68, 100]
VERSIONS = {key: BY_KEY[key].versions if key in BY_KEY else range(2) for key in KEYS}


@pytest.fixture
def connect(secured):
    return lambda: SecuredWire(secured.inside("alice"))


def request(key: int, version: int) -> bytes:
    """A request that is valid except for the missing login; an unknown key has an empty body."""
    header_fields = headers.RequestHeader(key, version, 1, "a-client")
    if key not in BY_KEY:
        return b"".join(frame(headers.encode_request_header(header_fields, 1), [b""]))
    api = BY_KEY[key]
    header = headers.encode_request_header(header_fields, api.request_header_version(version))
    return b"".join(frame(header, api.request_codec(version).encode(api.request())))


@pytest.mark.parametrize(
    "keys", [REPRESENTATIVE_KEYS, pytest.param(KEYS, marks=pytest.mark.long)], ids=["some", "all"]
)
def test_requests_before_login_close_the_connection(connect, keys):
    """All keys are tried in tests/unit/broker/security/test_sasl_login.py."""
    for key in keys:
        for version in VERSIONS[key]:
            with connect() as wire:
                wire.socket.sendall(request(key, version))
                assert wire.is_closed_by_broker(), (key, version)


def test_unsupported_requests_before_login_close_the_connection(connect):
    for key, version in [(-1, 0), (18, -1), (17, 2), (17, -1), (36, 3), (32767, 32767)]:
        with connect() as wire:
            header = struct.pack(">hhih", key, version, 1, -1)
            wire.socket.sendall(b"".join(frame(header, [bytes(4)])))
            if key == API_VERSIONS.key:
                assert wire.receive_frame()  # In version 0, so that the client can negotiate.
            else:
                assert wire.is_closed_by_broker(), (key, version)


def test_request_during_a_login_closes_the_connection(connect):
    with connect() as wire:
        wire.call(API_VERSIONS, 3, ApiVersionsRequest("a-client", "1.0"))
        assert wire.handshake("SCRAM-SHA-512").error_code == 0
        assert wire.authenticate(b"n,,n=alice,r=nonce").error_code == 0
        wire.send(METADATA, 9, MetadataRequest(topics=None))
        assert wire.is_closed_by_broker()


def test_request_pipelined_with_the_handshake_is_not_served(connect):
    with connect() as wire:
        wire.send(SASL_HANDSHAKE, 1, SaslHandshakeRequest("SCRAM-SHA-512"))
        wire.send(METADATA, 9, MetadataRequest(topics=None))
        assert wire.receive(SASL_HANDSHAKE, 1)[1].error_code == 0
        assert wire.is_closed_by_broker()


def test_large_frame_before_login_closes_the_connection(connect):
    with connect() as wire:
        wire.socket.sendall(struct.pack(">i", 1024 * 1024) + bytes(1000))
        assert wire.is_closed_by_broker()
