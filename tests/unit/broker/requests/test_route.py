"""Routes: every API can respond with an error, in every version."""

import pytest

from kafscale.broker.requests.route import route
from kafscale.errors import UnknownTopicError
from kafscale.protocol.apis import APIS
from kafscale.protocol.messages.fetch import FETCH
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR
from kafscale.protocol.messages.heartbeat import HEARTBEAT
from kafscale.protocol.messages.metadata import METADATA
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE
from unit.broker.harness import decode_response, dispatch, dispatcher, heartbeat_handler, request


def fail(_context, _request):
    raise UnknownTopicError("there is no such topic")


def can_refuse(api):
    try:
        route(api, fail)
    except AssertionError:
        return False
    return True


REFUSING = [api for api in APIS if can_refuse(api)]


@pytest.mark.parametrize("api", [PRODUCE, FETCH, METADATA, FIND_COORDINATOR], ids=lambda a: a.name)
def test_route_requires_error_response_without_top_level_error_code(api):
    assert api not in REFUSING
    assert route(api, fail, lambda *_: api.response()).api is api


@pytest.mark.parametrize("api", REFUSING, ids=lambda api: api.name)
def test_default_error_response_has_the_error_code_in_every_version(api):
    served = dispatcher(route(api, fail))
    for version in api.versions:
        if api.name == "ApiVersions" and version >= 3:
            continue  # Its own fields are needed; see the tests of the dispatcher.
        parts = dispatch(served, request(api, version))
        number, response = decode_response(b"".join(parts)[4:], api, version)
        assert (number, response.error_code) == (7, 3), f"{api.name} v{version}"


def test_default_error_response_has_the_error_message():
    parts = dispatch(dispatcher(route(SASL_AUTHENTICATE, fail)), request(SASL_AUTHENTICATE, 2))
    _, response = decode_response(b"".join(parts)[4:], SASL_AUTHENTICATE, 2)
    assert response.error_message == "there is no such topic"


def test_route_keeps_its_options():
    plain = route(HEARTBEAT, heartbeat_handler)
    assert (plain.has_own_timeout, plain.cancel_on_disconnect) == (False, False)
    waiting = route(HEARTBEAT, heartbeat_handler, has_own_timeout=True, cancel_on_disconnect=True)
    assert (waiting.has_own_timeout, waiting.cancel_on_disconnect) == (True, True)
