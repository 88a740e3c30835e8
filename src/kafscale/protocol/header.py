"""Request headers (v0 to v2) and response headers (v0, v1).

* `client_id` is never compact, not even in the flexible header v2: a broker must be able to read it
  before it knows whether it supports the version.
* The ApiVersions response has header v0 in every version (see `Api.response_header_version`).

Request header v0 is not used by any client today; it is supported for completeness.
"""

import struct

import msgspec

from kafscale.errors import ProtocolError
from kafscale.protocol.codec import varint

API = struct.Struct(">hh")
REQUEST_V0 = struct.Struct(">hhi")
REQUEST_V1 = struct.Struct(">hhih")
CORRELATION = struct.Struct(">i")
assert REQUEST_V0.size == 8
assert REQUEST_V1.size == 10


class RequestHeader(msgspec.Struct, gc=False):
    """The API, its version, the correlation id and the client id of a request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None


def peek_api(frame: memoryview) -> tuple[int, int]:
    """The API key and version of a request, which determine the header version."""
    if len(frame) < REQUEST_V0.size:
        raise ProtocolError(f"a request of {len(frame)} bytes has no header")
    key, version = API.unpack_from(frame)
    return key, version


def decode_request_header(frame: memoryview, header_version: int) -> tuple[RequestHeader, int]:
    """Decode the header at the start of a frame; return it with the position of the body."""
    if header_version == 0:
        key, version, correlation_id = _unpack(REQUEST_V0, frame)
        return RequestHeader(key, version, correlation_id), REQUEST_V0.size
    key, version, correlation_id, length = _unpack(REQUEST_V1, frame)
    position = REQUEST_V1.size
    client_id = None
    if length != -1:
        stop = position + length
        if not position <= stop <= len(frame):
            raise ProtocolError(f"invalid client_id length {length}")
        try:
            client_id = frame[position:stop].tobytes().decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(f"client_id is not UTF-8: {error}") from None
        position = stop
    if header_version >= 2:
        position = _skip_tags(frame, position)
    return RequestHeader(key, version, correlation_id, client_id), position


def encode_request_header(header: RequestHeader, header_version: int) -> bytes:
    if header_version == 0:
        return REQUEST_V0.pack(header.api_key, header.api_version, header.correlation_id)
    client_id = b"" if header.client_id is None else header.client_id.encode()
    length = -1 if header.client_id is None else len(client_id)
    fixed = REQUEST_V1.pack(header.api_key, header.api_version, header.correlation_id, length)
    return fixed + client_id + (b"\0" if header_version >= 2 else b"")


def decode_response_header(frame: memoryview, header_version: int) -> tuple[int, int]:
    """The correlation id of a response, and the position of its body."""
    (correlation_id,) = _unpack(CORRELATION, frame)
    position = CORRELATION.size
    return correlation_id, _skip_tags(frame, position) if header_version >= 1 else position


def encode_response_header(correlation_id: int, header_version: int) -> bytes:
    return CORRELATION.pack(correlation_id) + (b"\0" if header_version >= 1 else b"")


def _unpack(layout: struct.Struct, frame: memoryview) -> tuple[int, ...]:
    if len(frame) < layout.size:
        raise ProtocolError(f"truncated header of {len(frame)} bytes")
    return layout.unpack_from(frame)


def _skip_tags(frame: memoryview, position: int) -> int:
    try:
        position = varint.skip_tags(frame, position + 1, frame[position])
    except IndexError:
        position = len(frame) + 1
    if position > len(frame):
        raise ProtocolError("truncated tagged fields in a header")
    return position
