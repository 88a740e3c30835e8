"""The table and what is derived from it: header versions and the answer to ApiVersions."""

import pytest

from kafscale.errors import UnknownApiError
from kafscale.protocol import docs
from kafscale.protocol.apis import (
    APIS,
    BY_KEY,
    BY_NAME,
    api_versions_response,
    request_header_version,
)
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.api_versions import API_VERSIONS
from kafscale.protocol.messages.produce import PRODUCE


def test_the_table_is_in_the_order_of_its_keys():
    assert [api.key for api in APIS] == sorted(BY_KEY)
    assert BY_NAME["Produce"] is BY_KEY[0] is PRODUCE


def test_headers_follow_the_flexible_versions():
    assert [PRODUCE.request_header_version(version) for version in (0, 8, 9)] == [1, 1, 2]
    assert [PRODUCE.response_header_version(version) for version in (0, 8, 9)] == [0, 0, 1]


def test_the_answer_to_api_versions_never_has_a_flexible_header():
    headers = {API_VERSIONS.response_header_version(version) for version in range(10)}
    assert headers == {0}
    assert API_VERSIONS.request_header_version(3) == 2


def test_the_header_of_a_request_can_be_read_whatever_it_asks():
    assert request_header_version(18, 99) == 2
    assert request_header_version(9999, 0) == 1


def test_an_unknown_version_is_refused_with_those_that_are_known():
    with pytest.raises(UnknownApiError, match="Produce v14 is not supported; supported versions"):
        PRODUCE.request_codec(14)
    with pytest.raises(UnknownApiError):
        PRODUCE.response_codec(-1)
    assert UnknownApiError.code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", API_VERSIONS.versions)
def test_what_is_advertised_is_what_is_served(version):
    served = [API_VERSIONS, PRODUCE]
    codec = API_VERSIONS.response_codec(version)
    answer = codec.decode(codec.encode_bytes(api_versions_response(served)))
    ranges = [(found.key, found.version_min, found.version_max) for found in answer.apis]
    assert ranges == [(0, 0, 13), (18, 0, 4)]
    assert answer.error_code == 0


def test_an_unknown_version_of_api_versions_is_answered_in_v0_with_our_ranges():
    answer = api_versions_response([API_VERSIONS])
    answer.error_code = ErrorCode.UNSUPPORTED_VERSION
    encoded = API_VERSIONS.response_codec(0).encode_bytes(answer)
    assert encoded.hex() == "002300000001001200000004"


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_every_api_says_what_it_is_for(api):
    assert docs.purpose(api).endswith(".")
    assert api.name in docs.page({api.key})
