"""Routes: whatever is served can also be refused, in every version."""

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
from unit.broker.harness import answer, beat, dispatched, dispatcher, request


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
def test_an_api_whose_answer_has_no_error_code_in_some_version_brings_its_refusal(api):
    assert api not in REFUSING
    assert route(api, fail, lambda *_: api.response()).api is api


@pytest.mark.parametrize("api", REFUSING, ids=lambda api: api.name)
def test_where_the_answer_has_an_error_code_it_says_no_in_every_version(api):
    served = dispatcher(route(api, fail))
    for version in api.versions:
        if api.name == "ApiVersions" and version >= 3:
            continue  # Its own fields are needed; see the tests of the dispatcher.
        parts = dispatched(served, request(api, version))
        number, response = answer(b"".join(parts)[4:], api, version)
        assert (number, response.error_code) == (7, 3), f"{api.name} v{version}"


def test_the_message_of_the_error_is_told_where_there_is_room_for_it():
    parts = dispatched(dispatcher(route(SASL_AUTHENTICATE, fail)), request(SASL_AUTHENTICATE, 2))
    _, response = answer(b"".join(parts)[4:], SASL_AUTHENTICATE, 2)
    assert response.error_message == "there is no such topic"


def test_a_route_keeps_what_it_was_told():
    plain = route(HEARTBEAT, beat)
    assert (plain.brings_time_limit, plain.ends_with_client) == (False, False)
    waiting = route(HEARTBEAT, beat, brings_time_limit=True, ends_with_client=True)
    assert (waiting.brings_time_limit, waiting.ends_with_client) == (True, True)
