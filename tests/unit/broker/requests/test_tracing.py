"""The tracing dispatcher: one span per request, with its error."""

import asyncio

import pytest

from kafscale.broker.requests.context import ShutdownSignal
from kafscale.broker.requests.pending_response import InFlightRequest
from kafscale.broker.requests.route import route
from kafscale.broker.requests.tracing import TracingDispatcher
from kafscale.errors import NotOwnerError
from kafscale.observability import tracing
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatResponse
from services.recorded_spans import record_spans
from unit.broker.harness import (
    NOW_MS,
    Timer,
    dispatch,
    heartbeat,
    heartbeat_handler,
    response_parts,
    run,
)


@pytest.fixture
def recorder():
    with record_spans() as recorder:
        yield recorder


def traced(handler):
    return TracingDispatcher(
        [route(HEARTBEAT, handler)],
        None,
        Metrics(),
        ShutdownSignal(),
        request_timeout_ms=60_000,
        other_request_bytes_max=2**31,
        clock=lambda: NOW_MS,
        timer=Timer(),
    )


def test_immediate_response_ends_its_span(recorder):
    assert dispatch(traced(heartbeat_handler), heartbeat(7))
    (span,) = recorder.spans
    assert (span.name, span.has_ended, span.error) == ("Heartbeat", True, "")
    assert span.attributes["messaging.client.id"] == "tester"
    assert span.attributes["kafscale.api.version"] == 4
    assert span.attributes["network.peer.address"] == "10.0.0.1"
    assert tracing.current() is None


def test_span_of_a_waiting_request_ends_with_its_response(recorder):
    async def scenario():
        may_end = asyncio.Event()

        async def handler(_context, _request):
            await may_end.wait()
            with tracing.span("store"):
                return HeartbeatResponse()

        waiting = dispatch(traced(handler), heartbeat(7))
        assert isinstance(waiting, InFlightRequest)
        assert tracing.current() is None
        assert not recorder.spans[0].has_ended
        may_end.set()
        assert await response_parts(waiting)
        await asyncio.sleep(0)

    run(scenario)
    assert recorder.parents_by_name() == [("Heartbeat", None), ("store", "Heartbeat")]
    assert all(span.has_ended and not span.error for span in recorder.spans)


@pytest.mark.parametrize(
    ("error", "name"),
    [(NotOwnerError("x"), "NOT_LEADER_OR_FOLLOWER"), (RuntimeError("x"), "UNKNOWN_SERVER_ERROR")],
)
@pytest.mark.parametrize("waits", [False, True])
def test_span_of_a_failed_request_has_its_error(recorder, error, name, waits):
    def at_once(_context, _request):
        raise error

    async def later(_context, _request):
        raise error

    async def scenario():
        result = dispatch(traced(later if waits else at_once), heartbeat(7))
        assert await response_parts(result) if waits else result
        await asyncio.sleep(0)

    run(scenario)
    (span,) = recorder.spans
    assert (span.has_ended, span.error) == (True, name)


def test_disconnect_ends_the_span(recorder):
    async def scenario():
        async def handler(_context, _request):
            await asyncio.Event().wait()

        dispatcher = traced(handler)
        waiting = dispatch(dispatcher, heartbeat(7))
        waiting.client_disconnected()
        waiting.future.cancel()
        await asyncio.sleep(0.01)

    run(scenario)
    assert recorder.spans[0].has_ended


def test_unknown_requests_share_a_span_name(recorder):
    dispatcher = traced(heartbeat_handler)
    for data in (b"\x7f\xff\x00\x00", b"\x7f\xfe\x00\x01"):
        assert dispatch(dispatcher, len(data).to_bytes(4, "big") + data) is None
    assert {(span.name, span.error) for span in recorder.spans} == {("unknown request", "closed")}
