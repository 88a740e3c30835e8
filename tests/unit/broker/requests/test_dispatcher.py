"""The dispatcher: requests, responses and errors."""

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from kafscale.broker.requests.context import ClientInfo
from kafscale.broker.requests.pending_response import InFlightRequest
from kafscale.broker.requests.route import route
from kafscale.errors import NotOwnerError
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol import header as headers
from kafscale.protocol.frame import frame
from kafscale.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionRange,
    ApiVersionsRequest,
)
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from kafscale.protocol.messages.metadata import METADATA
from kafscale.security.principal import ANONYMOUS_NAME
from unit.broker.harness import (
    NOW_MS,
    REQUEST_SECONDS_MAX,
    Timer,
    decode_response,
    dispatch,
    dispatcher,
    framed,
    heartbeat,
    heartbeat_handler,
    request,
    response_parts,
    run,
    run_pending,
)


def single_part(parts):
    """The only frame of an encoded response."""
    return framed(b"".join(parts))


def raising(error):
    """Handlers that fail: at once, by a future, and as a coroutine."""

    def at_once(_context, _request):
        raise error

    def later(_context, _request):
        future = asyncio.get_running_loop().create_future()
        future.set_exception(error)
        return future

    async def coroutine(_context, _request):
        await asyncio.sleep(0)
        raise error

    return at_once, later, coroutine


async def served(handler):
    """The encoded response to a heartbeat, once it is complete."""
    result = dispatch(dispatcher(route(HEARTBEAT, handler)), heartbeat(7))
    return await response_parts(result) if isinstance(result, InFlightRequest) else result


@pytest.mark.parametrize("version", HEARTBEAT.versions)
def test_response_has_the_version_and_correlation_id_of_its_request(version):
    requested = request(HEARTBEAT, version, HeartbeatRequest(generation_id=3), correlation_id=99)
    parts = dispatch(dispatcher(route(HEARTBEAT, heartbeat_handler)), requested)
    number, response = decode_response(single_part(parts), HEARTBEAT, version)
    assert number == 99
    assert response.throttle_time_ms == (3 if version >= 1 else 0)


def test_handler_gets_client_and_header_in_its_context():
    seen = []

    def remember(context, requested):
        seen.append((context, requested))
        return HeartbeatResponse()

    client = ClientInfo("10.0.0.1", 50_000)
    result = dispatcher(route(HEARTBEAT, remember), timer=Timer())
    result.dispatch(
        client, framed(request(version=4, message=HeartbeatRequest(group_id="readers")))
    )
    [(context, requested)] = seen
    assert requested.group_id == "readers"
    assert context.client is client
    assert (context.client_id, context.client.principal.full_name) == ("tester", ANONYMOUS_NAME)
    assert (context.api, context.version, context.correlation_id) == (HEARTBEAT, 4, 7)
    assert (context.received_ms, context.started) == (NOW_MS, 100.0)
    assert not context.shutdown.is_set


def test_handler_may_return_no_response():
    assert dispatch(dispatcher(route(HEARTBEAT, lambda *_: None)), heartbeat(1)) == []


def test_handlers_start_in_request_order():
    async def scenario():
        order = []

        def handler(context, _request):
            order.append(context.correlation_id)
            return asyncio.sleep(0, HeartbeatResponse())

        result = dispatcher(route(HEARTBEAT, handler))
        first, second = (dispatch(result, heartbeat(number)) for number in (1, 2))
        assert order == [1, 2]
        assert len(result._in_flight) == 2
        for number, waiting in ((1, first), (2, second)):
            assert decode_response(single_part(await response_parts(waiting)))[0] == number
        assert not result._in_flight

    run(scenario)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_kafscale_error_becomes_its_error_code(kind):
    async def scenario():
        parts = await served(raising(NotOwnerError("elsewhere"))[kind])
        assert decode_response(single_part(parts)) == (7, HeartbeatResponse(error_code=6))

    with capture_logs() as logs:
        run(scenario)
    assert [event["log_level"] for event in logs] == ["debug"]


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_unexpected_exception_is_logged_and_becomes_unknown_server_error(kind):
    error = ZeroDivisionError("of no concern to clients")

    async def scenario():
        parts = await served(raising(error)[kind])
        assert decode_response(single_part(parts)) == (7, HeartbeatResponse(error_code=-1))

    with capture_logs() as logs:
        run(scenario)
    [event] = logs
    assert (event["event"], event["log_level"]) == ("request failed", "error")
    assert (event["client"], event["api"], event["version"]) == ("10.0.0.1:50000", "Heartbeat", 4)
    assert event["exc_info"] is error


def test_response_that_cannot_be_encoded_becomes_unknown_server_error():
    def broken(_context, _request):
        return HeartbeatResponse(throttle_time_ms="soon")

    with capture_logs() as logs:
        parts = dispatch(dispatcher(route(HEARTBEAT, broken)), heartbeat(7))
    assert decode_response(single_part(parts)) == (7, HeartbeatResponse(error_code=-1))
    assert [event["event"] for event in logs] == ["request failed"]


def refuse_by_failing(*_):
    raise ZeroDivisionError


@pytest.mark.parametrize("refuse", [lambda *_: None, refuse_by_failing])
def test_missing_or_failing_error_response_closes_the_connection(refuse):
    at_once, _, _ = raising(NotOwnerError("elsewhere"))
    with capture_logs() as logs:
        assert dispatch(dispatcher(route(HEARTBEAT, at_once, refuse)), heartbeat(7)) is None
    assert logs[-1]["event"] == "connection closed without a response"
    assert logs[-1]["error"] == "NOT_LEADER_OR_FOLLOWER"


def test_request_times_out_after_the_broker_limit():
    async def scenario():
        timer = Timer()
        result = dispatcher(
            route(HEARTBEAT, lambda *_: asyncio.get_running_loop().create_future()), timer=timer
        )
        waiting = dispatch(result, heartbeat(7))
        timer.now += REQUEST_SECONDS_MAX - 0.1
        result.expire()
        await run_pending()
        assert not waiting.done
        timer.now += 0.1
        result.expire()
        assert decode_response(single_part(await response_parts(waiting))) == (
            7,
            HeartbeatResponse(error_code=7),
        )

    run(scenario)


def test_request_with_its_own_timeout_has_no_broker_limit():
    async def scenario():
        timer = Timer()
        future = asyncio.get_running_loop().create_future()
        result = dispatcher(route(HEARTBEAT, lambda *_: future, has_own_timeout=True), timer=timer)
        waiting = dispatch(result, heartbeat(7))
        timer.now += 1e9
        result.expire()
        await run_pending()
        assert not future.done()
        future.set_result(HeartbeatResponse())
        assert decode_response(single_part(await response_parts(waiting))) == (
            7,
            HeartbeatResponse(),
        )

    run(scenario)


@pytest.mark.parametrize("ends", [True, False])
def test_disconnect_cancels_only_requests_with_cancel_on_disconnect(ends):
    async def scenario():
        metrics = Metrics()
        future = asyncio.get_running_loop().create_future()
        result = dispatcher(
            route(HEARTBEAT, lambda *_: future, cancel_on_disconnect=ends), metrics=metrics
        )
        waiting = dispatch(result, heartbeat(7))
        waiting.client_disconnected()
        await run_pending()
        assert future.cancelled() == ends
        assert len(result._in_flight) == (0 if ends else 1)
        assert metrics.total("Heartbeat") == 0
        if not ends:
            future.set_result(HeartbeatResponse())
            await run_pending()
            assert metrics.total("Heartbeat") == 1

    run(scenario)


def other(api, version, correlation_id=5):
    """A request of an API or version that is not served."""
    return b"".join(
        frame(
            headers.encode_request_header(
                headers.RequestHeader(api, version, correlation_id, "tester"), 1
            ),
            [b""],
        )
    )


@pytest.mark.parametrize(
    ("key", "version"), [(METADATA.key, 1), (999, 0), (-1, 0), (12, 5), (12, -1)]
)
def test_unknown_api_or_version_is_logged_and_closes_the_connection(key, version):
    with capture_logs() as logs:
        assert (
            dispatch(dispatcher(route(HEARTBEAT, heartbeat_handler)), other(key, version)) is None
        )
    [event] = logs
    assert event["log_level"] == "warning"
    assert (event["api_key"], event["version"]) == (key, version)
    assert (event["client"], event["client_id"]) == ("10.0.0.1:50000", "tester")


def test_bytes_after_a_request_are_ignored():
    data = heartbeat(1)[4:] + bytes(3)
    result = dispatcher(route(HEARTBEAT, heartbeat_handler))
    assert result.dispatch(ClientInfo("10.0.0.1", 1), memoryview(bytearray(data))) is not None


def test_truncated_request_closes_the_connection():
    data = heartbeat(1)[4:-1]
    with capture_logs() as logs:
        result = dispatcher(route(HEARTBEAT, heartbeat_handler))
        assert result.dispatch(ClientInfo("10.0.0.1", 1), memoryview(bytearray(data))) is None
    [event] = logs
    assert (event["event"], event["api_key"], event["version"]) == ("unreadable request", 12, 4)


@given(st.binary(max_size=40) | st.binary(max_size=40).map(lambda rest: b"\0\x0c\0\4" + rest))
def test_dispatcher_never_raises(data):
    result = dispatcher(route(HEARTBEAT, heartbeat_handler))
    with capture_logs(), contextlib.suppress(StopIteration):
        parts = result.dispatch(ClientInfo("10.0.0.1", 1), memoryview(bytearray(data)))
        assert parts is None or isinstance(parts, list)


@pytest.mark.parametrize("version", API_VERSIONS.versions)
def test_api_versions_lists_the_served_apis(version):
    requested = request(API_VERSIONS, version, ApiVersionsRequest("kafscale-test", "1.0"))
    parts = dispatch(dispatcher(route(HEARTBEAT, heartbeat_handler)), requested)
    _, response = decode_response(single_part(parts), API_VERSIONS, version)
    assert response.error_code == 0
    assert response.apis == [ApiVersionRange(12, 0, 4), ApiVersionRange(18, 0, 4)]


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_unknown_version_of_api_versions_is_answered_in_v0(version):
    parts = dispatch(
        dispatcher(route(HEARTBEAT, heartbeat_handler)), other(API_VERSIONS.key, version)
    )
    number, response = decode_response(single_part(parts), API_VERSIONS, 0)
    assert (number, response.error_code) == (5, 35)
    assert ApiVersionRange(18, 0, 4) in response.apis


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a", ""), ("-a", "1"), ("a b", "1")])
def test_invalid_client_software_name_is_refused(name, version):
    client = ClientInfo("10.0.0.1", 1)
    message = ApiVersionsRequest(name, version)
    parts = dispatcher().dispatch(client, framed(request(API_VERSIONS, 3, message)))
    assert decode_response(single_part(parts), API_VERSIONS, 3)[1].error_code == 42


def test_requests_are_counted_by_outcome():
    metrics, timer = Metrics(), Timer()

    def slow(_context, requested):
        timer.now += 0.02
        if requested.generation_id:
            raise NotOwnerError("elsewhere")
        return HeartbeatResponse()

    result = dispatcher(route(HEARTBEAT, slow), metrics=metrics, timer=timer)
    for number in (0, 0, 1):
        dispatch(result, heartbeat(number))
    counters = metrics.requests("Heartbeat", 4)
    assert (counters.succeeded, counters.refusals) == (2, {"NOT_LEADER_OR_FOLLOWER": 1})
    assert metrics.by_api["Heartbeat"].sum == pytest.approx(0.06)
