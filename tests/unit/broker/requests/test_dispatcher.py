"""The dispatcher: a request in, its answer out, and no way to make it raise."""

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from kafscale.broker.requests.context import ClientInfo
from kafscale.broker.requests.dispatcher import Waiting
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
    answer,
    beat,
    dispatched,
    dispatcher,
    framed,
    heartbeat,
    request,
    run,
    settled,
    turn,
)


def sole(parts):
    """The one frame that parts make, without its length."""
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
    """The parts that a heartbeat is answered with, however long that takes."""
    result = dispatched(dispatcher(route(HEARTBEAT, handler)), heartbeat(7))
    return await settled(result) if isinstance(result, Waiting) else result


@pytest.mark.parametrize("version", HEARTBEAT.versions)
def test_a_request_is_answered_in_its_own_version_under_its_number(version):
    asked = request(HEARTBEAT, version, HeartbeatRequest(generation_id=3), correlation_id=99)
    parts = dispatched(dispatcher(route(HEARTBEAT, beat)), asked)
    number, response = answer(sole(parts), HEARTBEAT, version)
    assert number == 99
    assert response.throttle_time_ms == (3 if version >= 1 else 0)


def test_a_handler_is_told_who_asks_what():
    seen = []

    def remember(context, asked):
        seen.append((context, asked))
        return HeartbeatResponse()

    client = ClientInfo("10.0.0.1", 50_000)
    found = dispatcher(route(HEARTBEAT, remember), timer=Timer())
    found.dispatch(client, framed(request(version=4, message=HeartbeatRequest(group_id="readers"))))
    [(context, asked)] = seen
    assert asked.group_id == "readers"
    assert context.client is client
    assert (context.client_id, context.client.identity.full_name) == ("tester", ANONYMOUS_NAME)
    assert (context.api, context.version, context.correlation_id) == (HEARTBEAT, 4, 7)
    assert (context.received_ms, context.started) == (NOW_MS, 100.0)
    assert not context.drain.begun


def test_a_request_that_wants_no_answer_gets_none():
    assert dispatched(dispatcher(route(HEARTBEAT, lambda *_: None)), heartbeat(1)) == []


def test_what_a_handler_does_before_it_returns_is_done_when_the_next_request_is_read():
    async def story():
        order = []

        def handler(context, _request):
            order.append(context.correlation_id)
            return asyncio.sleep(0, HeartbeatResponse())

        found = dispatcher(route(HEARTBEAT, handler))
        first, second = (dispatched(found, heartbeat(number)) for number in (1, 2))
        assert order == [1, 2]
        assert found.waiting_count == 2
        for number, waiting in ((1, first), (2, second)):
            assert answer(sole(await settled(waiting)))[0] == number
        assert found.waiting_count == 0

    run(story)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_an_error_of_ours_is_answered_with_its_code(kind):
    async def story():
        parts = await served(raising(NotOwnerError("elsewhere"))[kind])
        assert answer(sole(parts)) == (7, HeartbeatResponse(error_code=6))

    with capture_logs() as logs:
        run(story)
    assert [event["log_level"] for event in logs] == ["debug"]


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_any_other_error_is_a_defect_logged_with_its_traceback_and_answered_as_unknown(kind):
    error = ZeroDivisionError("of no concern to clients")

    async def story():
        parts = await served(raising(error)[kind])
        assert answer(sole(parts)) == (7, HeartbeatResponse(error_code=-1))

    with capture_logs() as logs:
        run(story)
    [event] = logs
    assert (event["event"], event["log_level"]) == ("request failed", "error")
    assert (event["client"], event["api"], event["version"]) == ("10.0.0.1:50000", "Heartbeat", 4)
    assert event["exc_info"] is error


def test_an_answer_that_cannot_be_written_is_a_defect_as_well():
    def broken(_context, _request):
        return HeartbeatResponse(throttle_time_ms="soon")

    with capture_logs() as logs:
        parts = dispatched(dispatcher(route(HEARTBEAT, broken)), heartbeat(7))
    assert answer(sole(parts)) == (7, HeartbeatResponse(error_code=-1))
    assert [event["event"] for event in logs] == ["request failed"]


def refuse_by_failing(*_):
    raise ZeroDivisionError


@pytest.mark.parametrize("refuse", [lambda *_: None, refuse_by_failing])
def test_where_no_refusal_can_be_told_the_connection_closes(refuse):
    at_once, _, _ = raising(NotOwnerError("elsewhere"))
    with capture_logs() as logs:
        assert dispatched(dispatcher(route(HEARTBEAT, at_once, refuse)), heartbeat(7)) is None
    assert logs[-1]["event"] == "connection closed without an answer"
    assert logs[-1]["error"] == "NOT_LEADER_OR_FOLLOWER"


def test_a_request_ends_at_the_time_limit_of_the_broker():
    async def story():
        timer = Timer()
        found = dispatcher(
            route(HEARTBEAT, lambda *_: asyncio.get_running_loop().create_future()), timer=timer
        )
        waiting = dispatched(found, heartbeat(7))
        timer.now += REQUEST_SECONDS_MAX - 0.1
        found.expire()
        await turn()
        assert not waiting.done
        timer.now += 0.1
        found.expire()
        assert answer(sole(await settled(waiting))) == (7, HeartbeatResponse(error_code=7))

    run(story)


def test_a_request_that_brings_its_own_time_limit_is_left_alone():
    async def story():
        timer = Timer()
        future = asyncio.get_running_loop().create_future()
        found = dispatcher(route(HEARTBEAT, lambda *_: future, brings_time_limit=True), timer=timer)
        waiting = dispatched(found, heartbeat(7))
        timer.now += 1e9
        found.expire()
        await turn()
        assert not future.done()
        future.set_result(HeartbeatResponse())
        assert answer(sole(await settled(waiting))) == (7, HeartbeatResponse())

    run(story)


@pytest.mark.parametrize("ends", [True, False])
def test_a_client_that_leaves_takes_along_only_what_ends_with_it(ends):
    async def story():
        metrics = Metrics()
        future = asyncio.get_running_loop().create_future()
        found = dispatcher(
            route(HEARTBEAT, lambda *_: future, ends_with_client=ends), metrics=metrics
        )
        waiting = dispatched(found, heartbeat(7))
        waiting.client_left()
        await turn()
        assert future.cancelled() == ends
        assert found.waiting_count == (0 if ends else 1)
        assert metrics.total("Heartbeat") == 0
        if not ends:
            future.set_result(HeartbeatResponse())
            await turn()
            assert metrics.total("Heartbeat") == 1

    run(story)


def other(api, version, correlation_id=5):
    """A request of an API or version that nobody serves."""
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
def test_what_is_not_served_closes_the_connection_with_a_line_that_says_what_it_was(key, version):
    with capture_logs() as logs:
        assert dispatched(dispatcher(route(HEARTBEAT, beat)), other(key, version)) is None
    [event] = logs
    assert event["log_level"] == "warning"
    assert (event["api_key"], event["version"]) == (key, version)
    assert (event["client"], event["client_id"]) == ("10.0.0.1:50000", "tester")


def test_a_request_that_is_too_long_is_served_as_kafka_does():
    data = heartbeat(1)[4:] + bytes(3)
    found = dispatcher(route(HEARTBEAT, beat))
    assert found.dispatch(ClientInfo("10.0.0.1", 1), memoryview(bytearray(data))) is not None


def test_a_request_that_is_too_short_closes_the_connection():
    data = heartbeat(1)[4:-1]
    with capture_logs() as logs:
        found = dispatcher(route(HEARTBEAT, beat))
        assert found.dispatch(ClientInfo("10.0.0.1", 1), memoryview(bytearray(data))) is None
    [event] = logs
    assert (event["event"], event["api_key"], event["version"]) == ("unreadable request", 12, 4)


@given(st.binary(max_size=40) | st.binary(max_size=40).map(lambda rest: b"\0\x0c\0\4" + rest))
def test_no_bytes_make_the_dispatcher_raise(data):
    found = dispatcher(route(HEARTBEAT, beat))
    with capture_logs(), contextlib.suppress(StopIteration):
        parts = found.dispatch(ClientInfo("10.0.0.1", 1), memoryview(bytearray(data)))
        assert parts is None or isinstance(parts, list)


@pytest.mark.parametrize("version", API_VERSIONS.versions)
def test_clients_are_told_what_is_served_and_nothing_else(version):
    asked = request(API_VERSIONS, version, ApiVersionsRequest("kafscale-test", "1.0"))
    parts = dispatched(dispatcher(route(HEARTBEAT, beat)), asked)
    _, response = answer(sole(parts), API_VERSIONS, version)
    assert response.error_code == 0
    assert response.apis == [ApiVersionRange(12, 0, 4), ApiVersionRange(18, 0, 4)]


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_api_versions_in_an_unknown_version_is_answered_in_v0_with_what_is_known(version):
    parts = dispatched(dispatcher(route(HEARTBEAT, beat)), other(API_VERSIONS.key, version))
    number, response = answer(sole(parts), API_VERSIONS, 0)
    assert (number, response.error_code) == (5, 35)
    assert ApiVersionRange(18, 0, 4) in response.apis


def test_the_software_of_a_client_is_remembered():
    client = ClientInfo("10.0.0.1", 1)
    message = ApiVersionsRequest("apache-kafka-java", "4.1.0")
    dispatcher().dispatch(client, framed(request(API_VERSIONS, 3, message)))
    assert (client.software_name, client.software_version) == ("apache-kafka-java", "4.1.0")


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a", ""), ("-a", "1"), ("a b", "1")])
def test_software_that_has_no_proper_name_is_refused(name, version):
    client = ClientInfo("10.0.0.1", 1)
    message = ApiVersionsRequest(name, version)
    parts = dispatcher().dispatch(client, framed(request(API_VERSIONS, 3, message)))
    assert answer(sole(parts), API_VERSIONS, 3)[1].error_code == 42
    assert client.software_name == ""


def test_requests_are_counted_by_how_they_ended():
    metrics, timer = Metrics(), Timer()

    def slow(_context, asked):
        timer.now += 0.02
        if asked.generation_id:
            raise NotOwnerError("elsewhere")
        return HeartbeatResponse()

    found = dispatcher(route(HEARTBEAT, slow), metrics=metrics, timer=timer)
    for number in (0, 0, 1):
        dispatched(found, heartbeat(number))
    traffic = metrics.requests("Heartbeat", 4)
    assert (traffic.succeeded, traffic.refusals) == (2, {"NOT_LEADER_OR_FOLLOWER": 1})
    assert metrics.by_api["Heartbeat"].sum == pytest.approx(0.06)
