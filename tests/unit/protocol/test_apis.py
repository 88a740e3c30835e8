"""The API table, header versions and the ApiVersions response."""

import pytest

from kafscale.errors import UnknownApiError
from kafscale.protocol import docs
from kafscale.protocol.apis import APIS, BY_KEY, BY_NAME, api_versions_response
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.api_versions import API_VERSIONS
from kafscale.protocol.messages.produce import PRODUCE
from services.for_each import for_each


def test_table_is_sorted_by_key():
    assert [api.key for api in APIS] == sorted(BY_KEY)
    assert BY_NAME["Produce"] is BY_KEY[0] is PRODUCE


def test_header_versions_follow_flexible_versions():
    assert [PRODUCE.request_header_version(version) for version in (0, 8, 9)] == [1, 1, 2]
    assert [PRODUCE.response_header_version(version) for version in (0, 8, 9)] == [0, 0, 1]


def test_api_versions_response_header_is_never_flexible():
    headers = {API_VERSIONS.response_header_version(version) for version in range(10)}
    assert headers == {0}
    assert API_VERSIONS.request_header_version(3) == 2


def test_unsupported_version_is_rejected_with_the_supported_ones():
    with pytest.raises(UnknownApiError, match="Produce v14 is not supported; supported versions"):
        PRODUCE.request_codec(14)
    with pytest.raises(UnknownApiError):
        PRODUCE.response_codec(-1)
    assert UnknownApiError.code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", API_VERSIONS.versions)
def test_advertised_apis_are_the_served_ones(version):
    served = [API_VERSIONS, PRODUCE]
    codec = API_VERSIONS.response_codec(version)
    response = codec.decode(codec.encode_bytes(api_versions_response(served)))
    ranges = [(result.key, result.version_min, result.version_max) for result in response.apis]
    assert ranges == [(0, 0, 13), (18, 0, 4)]
    assert response.error_code == 0


def test_unsupported_api_versions_request_gets_a_v0_response():
    response = api_versions_response([API_VERSIONS])
    response.error_code = ErrorCode.UNSUPPORTED_VERSION
    encoded = API_VERSIONS.response_codec(0).encode_bytes(response)
    assert encoded.hex() == "002300000001001200000004"


@for_each(APIS, lambda api: api.name)
def test_every_api_has_a_description(api):
    assert docs.purpose(api).endswith(".")
