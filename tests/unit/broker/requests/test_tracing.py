"""The dispatcher that traces: a span for each request, which ends with it and knows its error."""

import asyncio

import pytest

from kafscale.broker.requests.context import Drain
from kafscale.broker.requests.dispatcher import Waiting
from kafscale.broker.requests.route import route
from kafscale.broker.requests.tracing import TracedDispatcher
from kafscale.errors import NotOwnerError
from kafscale.observability import tracing
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatResponse
from services.noted_spans import noted
from unit.broker.harness import NOW_MS, Timer, beat, dispatched, heartbeat, run, settled


@pytest.fixture
def notes():
    with noted() as made:
        yield made


def traced(handler):
    return TracedDispatcher(
        [route(HEARTBEAT, handler)],
        None,
        Metrics(),
        Drain(),
        request_timeout_ms=60_000,
        clock=lambda: NOW_MS,
        timer=Timer(),
    )


def test_a_request_that_is_answered_at_once(notes):
    assert dispatched(traced(beat), heartbeat(7))
    (span,) = notes.spans
    assert (span.name, span.is_over, span.error) == ("Heartbeat", True, "")
    assert span.attributes["messaging.client.id"] == "tester"
    assert span.attributes["kafscale.api.version"] == 4
    assert span.attributes["network.peer.address"] == "10.0.0.1"
    assert tracing.current() is None


def test_a_request_that_waits_ends_with_its_answer(notes):
    async def story():
        may_end = asyncio.Event()

        async def handler(_context, _request):
            await may_end.wait()
            with tracing.span("store"):
                return HeartbeatResponse()

        waiting = dispatched(traced(handler), heartbeat(7))
        assert isinstance(waiting, Waiting)
        assert tracing.current() is None
        assert not notes.spans[0].is_over
        may_end.set()
        assert await settled(waiting)
        await asyncio.sleep(0)

    run(story)
    assert notes.family() == [("Heartbeat", None), ("store", "Heartbeat")]
    assert all(span.is_over and not span.error for span in notes.spans)


@pytest.mark.parametrize(
    ("error", "name"),
    [(NotOwnerError("x"), "NOT_LEADER_OR_FOLLOWER"), (RuntimeError("x"), "UNKNOWN_SERVER_ERROR")],
)
@pytest.mark.parametrize("waits", [False, True])
def test_a_request_that_is_refused_tells_its_error(notes, error, name, waits):
    def at_once(_context, _request):
        raise error

    async def later(_context, _request):
        raise error

    async def story():
        result = dispatched(traced(later if waits else at_once), heartbeat(7))
        assert await settled(result) if waits else result
        await asyncio.sleep(0)

    run(story)
    (span,) = notes.spans
    assert (span.is_over, span.error) == (True, name)


def test_a_client_that_leaves_ends_what_it_waited_for(notes):
    async def story():
        async def handler(_context, _request):
            await asyncio.Event().wait()

        dispatcher = traced(handler)
        waiting = dispatched(dispatcher, heartbeat(7))
        waiting.client_left()
        waiting.future.cancel()
        await asyncio.sleep(0.01)

    run(story)
    assert notes.spans[0].is_over


def test_bytes_that_are_no_request_have_one_name_together(notes):
    dispatcher = traced(beat)
    for data in (b"\x7f\xff\x00\x00", b"\x7f\xfe\x00\x01"):
        assert dispatched(dispatcher, len(data).to_bytes(4, "big") + data) is None
    assert {(span.name, span.error) for span in notes.spans} == {("unknown request", "closed")}
