"""kio and kafka-python decode Kafscale's headers and encode the same bytes."""

import importlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.api_header import RequestHeader as KafkaPythonRequestHeader
from kafka.protocol.api_header import ResponseHeader as KafkaPythonResponseHeader

from conformance.protocol.reference_codecs import kio_rewrite
from kafscale.protocol.header import RequestHeader, encode_request_header, encode_response_header

int16s = st.integers(0, 2**15 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
client_ids = st.none() | st.text(st.characters(codec="utf-8"), max_size=20)


@pytest.mark.parametrize("version", [1, 2])
@given(header=st.builds(RequestHeader, int16s, int16s, int32s, client_ids))
def test_request_headers_equal_other_implementations(version, header):
    encoded = encode_request_header(header, version)
    module = importlib.import_module(f"kio.schema.request_header.v{version}.header")
    assert kio_rewrite(module.RequestHeader)(encoded) == encoded
    flexible = version == 2
    theirs = KafkaPythonRequestHeader.decode(io.BytesIO(encoded), flexible=flexible)
    assert theirs.encode(flexible=flexible) == encoded
    assert theirs.client_id == header.client_id


@pytest.mark.parametrize("version", [0, 1])
@given(correlation_id=int32s)
def test_response_headers_equal_other_implementations(version, correlation_id):
    encoded = encode_response_header(correlation_id, version)
    module = importlib.import_module(f"kio.schema.response_header.v{version}.header")
    assert kio_rewrite(module.ResponseHeader)(encoded) == encoded
    flexible = version == 1
    theirs = KafkaPythonResponseHeader.decode(io.BytesIO(encoded), flexible=flexible)
    assert theirs.encode(flexible=flexible) == encoded
    assert theirs.correlation_id == correlation_id
