"""Request and response headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import ProtocolError
from kafscale.protocol.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    peek_api,
)

headers = st.builds(
    RequestHeader,
    api_key=st.integers(-(2**15), 2**15 - 1),
    api_version=st.integers(-(2**15), 2**15 - 1),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    client_id=st.none() | st.text(max_size=40),
)


@given(header=headers, header_version=st.sampled_from([0, 1, 2]), body=st.binary(max_size=10))
def test_request_header_round_trips(header, header_version, body):
    encoded = encode_request_header(header, header_version)
    decoded, position = decode_request_header(memoryview(encoded + body), header_version)
    assert position == len(encoded)
    assert decoded.client_id == (None if header_version == 0 else header.client_id)
    assert decoded.correlation_id == header.correlation_id
    assert peek_api(memoryview(encoded)) == (header.api_key, header.api_version)


def test_client_id_is_not_compact_in_the_flexible_header():
    encoded = encode_request_header(RequestHeader(18, 3, 7, "me"), 2)
    assert encoded.hex() == "001200030000000700026d6500"


def test_unknown_tagged_fields_in_a_header_are_skipped():
    encoded = encode_request_header(RequestHeader(18, 3, 7, "me"), 1) + b"\x01\x09\x02xx"
    header, position = decode_request_header(memoryview(encoded + b"body"), 2)
    assert (header.client_id, position) == ("me", len(encoded))


@given(header=headers, header_version=st.sampled_from([0, 1, 2]))
def test_truncated_header_is_rejected(header, header_version):
    encoded = encode_request_header(header, header_version)
    for length in range(len(encoded)):
        with pytest.raises(ProtocolError):
            decode_request_header(memoryview(encoded)[:length], header_version)


@pytest.mark.parametrize(
    "damaged", ["0000000000000000fffe", "00000000000000007fff61", "0000000000000000000180"]
)
def test_invalid_client_id_is_rejected(damaged):
    with pytest.raises(ProtocolError):
        decode_request_header(memoryview(bytes.fromhex(damaged)), 1)


def test_endless_tagged_fields_are_rejected():
    encoded = encode_request_header(RequestHeader(18, 3, 7), 1) + b"\xff\xff\xff\xff\x0f"
    with pytest.raises(ProtocolError):
        decode_request_header(memoryview(encoded), 2)


@pytest.mark.parametrize(("header_version", "encoded"), [(0, "0000002a"), (1, "0000002a00")])
def test_response_header_is_correlation_id_and_tagged_fields(header_version, encoded):
    assert encode_response_header(42, header_version).hex() == encoded
    frame = memoryview(bytes.fromhex(encoded + "ff"))
    assert decode_response_header(frame, header_version) == (42, len(frame) - 1)
    with pytest.raises(ProtocolError):
        decode_response_header(frame[:3], header_version)
