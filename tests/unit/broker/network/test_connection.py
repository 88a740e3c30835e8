"""One connection: response order, limits, timeouts and shutdown, over a transport in memory."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from kafscale.broker.requests.route import route
from kafscale.errors import NotOwnerError
from kafscale.protocol.frame import RECEIVE_BYTES
from kafscale.protocol.messages.delete_records import DELETE_RECORDS
from kafscale.protocol.messages.describe_producers import DESCRIBE_PRODUCERS
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.list_offsets import LIST_OFFSETS
from kafscale.protocol.messages.produce import PRODUCE
from unit.broker.harness import (
    ManualHandlers,
    Peer,
    heartbeat,
    heartbeat_handler,
    produce,
    request,
    run,
    run_pending,
)

HEARTBEAT_ROUTE = route(HEARTBEAT, heartbeat_handler)


@given(st.lists(st.integers(min_value=1, max_value=60), max_size=20))
def test_connection_reassembles_requests_from_any_fragments(cuts):
    peer = Peer(HEARTBEAT_ROUTE)
    stream = b"".join(map(heartbeat, range(10)))
    for cut in cuts:
        peer.send(stream[:cut])
        stream = stream[cut:]
    peer.send(stream)
    assert peer.transport.answered == list(range(10))


def test_immediate_response_needs_no_event_loop():
    peer = Peer(HEARTBEAT_ROUTE)
    peer.send(heartbeat(5))
    assert peer.transport.answered == [5]
    assert not peer.dispatcher._in_flight


@given(st.permutations([1, 2, 3]))
def test_responses_are_sent_in_request_order(order):
    async def scenario():
        handlers = ManualHandlers()
        peer = Peer(*handlers.routes())
        peer.send(*map(heartbeat, (1, 2, 3)))
        assert handlers.dispatched == [1, 2, 3]
        for count, number in enumerate(order, 1):
            handlers.finish(number)
            await run_pending()
            done = set(order[:count])
            ready = next((n for n in (1, 2, 3) if n not in done), 4) - 1
            assert peer.transport.answered == list(range(1, ready + 1))

    run(scenario)


def test_responses_completed_together_are_sent_in_one_write():
    async def scenario():
        handlers = ManualHandlers()
        peer = Peer(*handlers.routes())
        peer.send(*map(heartbeat, range(3)))
        handlers.finish(0, 1, 2)
        await run_pending()
        assert peer.transport.answered == [0, 1, 2]
        assert peer.transport.write_count == 1

    run(scenario)


def test_disconnect_cancels_the_scheduled_send():
    async def scenario():
        handlers = ManualHandlers()
        peer = Peer(*handlers.routes())
        peer.send(*map(heartbeat, range(2)))
        handlers.finish(0)
        await asyncio.sleep(0)  # It is complete, and scheduled to be sent.
        peer.connection.connection_lost(None)
        await run_pending()
        assert peer.transport.write_count == 0

    run(scenario)


def test_immediate_response_waits_for_earlier_ones():
    async def scenario():
        handlers = ManualHandlers()
        peer = Peer(HEARTBEAT_ROUTE, handlers.routes()[1])
        peer.send(produce(1), heartbeat(2))
        await run_pending()
        assert peer.transport.answered == []
        handlers.futures[1].set_result(PRODUCE.response())
        await run_pending()
        assert peer.transport.answered == [1, 2]

    run(scenario)


def test_request_without_response_leaves_no_gap():
    async def scenario():
        handlers = ManualHandlers()
        peer = Peer(*handlers.routes())
        peer.send(produce(1, acks=0), heartbeat(2), produce(3, acks=0), heartbeat(4))
        assert handlers.dispatched == [1, 2, 3, 4]
        handlers.finish(4, 2)
        await run_pending()
        assert peer.transport.answered == [2, 4]

    run(scenario)


def test_in_flight_limit_pauses_dispatch_and_reading():
    async def scenario():
        handlers = ManualHandlers()
        peer = Peer(*handlers.routes())
        peer.send(*map(heartbeat, (1, 2)))
        assert peer.transport.reading
        peer.send(*map(heartbeat, (3, 4, 5)))
        assert handlers.dispatched == [1, 2, 3]
        assert not peer.transport.reading
        handlers.finish(2)
        await run_pending()
        assert handlers.dispatched == [1, 2, 3], (
            "the answer of the second still waits for the first"
        )
        handlers.finish(1)
        await run_pending()
        assert handlers.dispatched == [1, 2, 3, 4, 5]
        assert not peer.transport.reading
        handlers.finish(3, 4, 5)
        await run_pending()
        assert peer.transport.answered == [1, 2, 3, 4, 5]
        assert peer.transport.reading

    run(scenario)


def test_dispatch_pauses_while_the_client_does_not_read():
    async def scenario():
        handlers = ManualHandlers()
        peer = Peer(*handlers.routes())
        peer.send(heartbeat(1))
        peer.connection.pause_writing()
        assert not peer.transport.reading
        peer.send(heartbeat(2))  # Received before the transport paused.
        assert handlers.dispatched == [1]
        handlers.finish(1)
        await run_pending()
        assert peer.transport.answered == [1]
        assert handlers.dispatched == [1]
        peer.connection.resume_writing()
        assert handlers.dispatched == [1, 2]
        assert peer.transport.reading

    run(scenario)


def test_backpressure_pauses_producers_until_it_is_released():
    async def scenario():
        handlers = ManualHandlers()
        relief = asyncio.get_running_loop().create_future()
        gate = [None, relief, None]
        peer = Peer(*handlers.routes(), backpressure=lambda: gate.pop(0))
        peer.send(heartbeat(1), produce(2), produce(3), produce(4))
        assert handlers.dispatched == [1, 2, 3], (
            "a heartbeat passes no gate, the first produce an open one"
        )
        assert not peer.transport.reading
        handlers.finish(1)
        await run_pending()
        assert peer.transport.answered == [1], "answers are not held back"
        assert handlers.dispatched == [1, 2, 3]
        relief.set_result(None)
        await run_pending()
        assert handlers.dispatched == [1, 2, 3, 4]

    run(scenario)


@pytest.mark.parametrize("end", ["error", "cancel"])
def test_backpressure_is_released_if_its_future_fails(end):
    async def scenario():
        handlers = ManualHandlers()
        relief = asyncio.get_running_loop().create_future()
        peer = Peer(*handlers.routes(), backpressure=lambda: relief)
        peer.send(produce(1))
        assert not peer.transport.reading
        if end == "error":
            relief.set_exception(NotOwnerError("fenced"))
        else:
            relief.cancel()
        await run_pending()
        assert peer.transport.reading

    run(scenario)


def test_backpressure_released_after_disconnect_dispatches_nothing():
    async def scenario():
        handlers = ManualHandlers()
        relief = asyncio.get_running_loop().create_future()
        peer = Peer(*handlers.routes(), backpressure=lambda: relief)
        peer.send(produce(1), produce(2))
        peer.transport.close()
        peer.connection.connection_lost(None)
        relief.set_result(None)
        await run_pending()
        assert handlers.dispatched == [1]

    run(scenario)


@pytest.mark.parametrize("end", ["result", "error", "cancel"])
def test_handler_holds_back_later_requests(end):
    """A produced batch that is read in a thread is appended before those behind it."""

    async def scenario():
        handlers = ManualHandlers()
        hold = asyncio.get_running_loop().create_future()

        def hold_back(context, request):
            context.client.hold = hold
            return heartbeat_handler(context, request)

        produce_route = next(each for each in handlers.routes() if each.api is PRODUCE)
        peer = Peer(route(HEARTBEAT, hold_back), produce_route)
        peer.send(produce(1), heartbeat(2), produce(3))
        assert handlers.dispatched == [1]
        assert not peer.transport.reading
        handlers.finish(1)
        await run_pending()
        assert peer.transport.answered == [1, 2], "answers are not held back"
        assert handlers.dispatched == [1]
        if end == "result":
            hold.set_result(None)
        elif end == "error":
            hold.set_exception(NotOwnerError("fenced"))
        else:
            hold.cancel()
        await run_pending()
        assert handlers.dispatched == [1, 3]
        assert peer.transport.reading

    run(scenario)


def test_request_waits_for_an_earlier_one_with_an_effect():
    """A ListOffsets right behind a DeleteRecords sees it, although a fetch before it waits."""

    async def scenario():
        handlers, deletion = ManualHandlers(), asyncio.get_running_loop().create_future()
        delete = route(DELETE_RECORDS, lambda *_: deletion, lambda *_: None)
        peer = Peer(*handlers.routes(), delete)
        peer.send(heartbeat(1), request(DELETE_RECORDS, 2, correlation_id=2), heartbeat(3))
        assert handlers.dispatched == [1]
        assert not peer.transport.reading
        deletion.set_result(DELETE_RECORDS.response())
        await run_pending()
        assert handlers.dispatched == [1, 3]
        handlers.finish(3, 1)
        await run_pending()
        assert peer.transport.answered == [1, 2, 3]
        assert peer.transport.reading

    run(scenario)


def test_disconnect_is_noticed_while_others_would_wait():
    async def scenario():
        answer = asyncio.get_running_loop().create_future()
        describe = route(
            DESCRIBE_PRODUCERS, lambda *_: answer, lambda *_: None, cancel_on_disconnect=True
        )
        peer = Peer(HEARTBEAT_ROUTE, describe)
        peer.send(request(DESCRIBE_PRODUCERS, 0, correlation_id=1))
        assert peer.transport.reading
        peer.send(heartbeat(2), heartbeat(3))
        assert not peer.transport.reading, "what waits is bounded"
        assert peer.transport.answered == []
        peer.connection.connection_lost(ConnectionResetError())
        await run_pending()
        assert answer.cancelled()

    run(scenario)


def test_request_of_offsets_waits_for_earlier_produces_only():
    async def scenario():
        handlers, asked = ManualHandlers(), []

        def list_offsets(context, _request):
            asked.append(context.correlation_id)
            return LIST_OFFSETS.response()

        offsets = route(LIST_OFFSETS, list_offsets, lambda *_: None, is_pipelined=True)
        peer = Peer(*handlers.routes(), offsets)

        def ask(number):
            return request(LIST_OFFSETS, 7, correlation_id=number)

        peer.send(produce(1), produce(2), ask(3), produce(4))
        assert (handlers.dispatched, asked) == ([1, 2], []), "produces are pipelined"
        handlers.finish(2)
        await run_pending()
        assert asked == []
        handlers.finish(1)
        await run_pending()
        assert (handlers.dispatched, asked) == ([1, 2, 4], [3])
        peer.send(heartbeat(5), ask(6))
        assert asked == [3], "the produce before it is not done"
        handlers.finish(4)
        await run_pending()
        assert asked == [3, 6], "a request that only waits is not waited for"
        handlers.finish(5)
        await run_pending()
        assert peer.transport.answered == [1, 2, 3, 4, 5, 6]

    run(scenario)


def test_disconnect_cancels_waiting_requests_but_no_append():
    async def scenario():
        handlers = ManualHandlers()
        peer = Peer(*handlers.routes())
        peer.send(heartbeat(1), produce(2))
        peer.transport.close()
        peer.connection.connection_lost(ConnectionResetError())
        await run_pending()
        assert peer.closed
        assert handlers.futures[1].cancelled()
        assert not handlers.futures[2].done()
        assert len(peer.dispatcher._in_flight) == 1
        handlers.futures[2].set_result(PRODUCE.response())
        await run_pending()
        assert not peer.dispatcher._in_flight
        assert peer.transport.answered == []

    run(scenario)


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", (4097).to_bytes(4, "big")])
def test_invalid_frame_length_closes_the_connection_before_the_body(length):
    peer = Peer(HEARTBEAT_ROUTE)
    with capture_logs() as logs:
        peer.send(length)
    assert peer.transport.closing
    assert [event["event"] for event in logs] == ["unreadable frame"]
    assert logs[0]["client"] == "10.0.0.1:50000"


def test_unreadable_request_closes_the_connection_after_earlier_responses():
    peer = Peer(HEARTBEAT_ROUTE)
    with capture_logs():
        peer.send(heartbeat(1), produce(2), heartbeat(3))
    assert peer.transport.closing
    assert peer.transport.answered == [1]


def test_missing_error_response_closes_the_connection():
    async def scenario():
        handlers = ManualHandlers()
        wait, _ = handlers.routes()
        peer = Peer(wait, route(PRODUCE, handlers.produce, lambda *_: None))
        peer.send(heartbeat(1), produce(2), heartbeat(3))
        handlers.futures[2].set_exception(NotOwnerError("elsewhere"))
        await run_pending()
        assert not peer.transport.closing
        handlers.finish(1)
        await run_pending()
        assert peer.transport.closing
        assert peer.transport.answered == [1]
        assert handlers.futures[3].cancelled()

    with capture_logs():
        run(scenario)


def test_connection_without_a_complete_request_is_closed():
    peer = Peer(HEARTBEAT_ROUTE)
    long = request(message=HeartbeatRequest(group_id="g" * 100))
    for byte in long[:29]:
        peer.send(bytes([byte]))
        peer.sweep(1)
    assert not peer.transport.closing
    peer.sweep(1.5)
    assert peer.transport.closing


def test_idle_connection_is_closed_after_idle_seconds():
    peer = Peer(HEARTBEAT_ROUTE)
    peer.sweep(29)
    peer.send(heartbeat(1))
    peer.sweep(500)
    peer.sweep(600)
    assert not peer.transport.closing
    peer.send(heartbeat(2))
    peer.sweep(600)
    peer.sweep(600)
    assert not peer.transport.closing
    peer.sweep(1)
    assert peer.transport.closing


def test_connection_with_a_request_in_flight_is_not_idle():
    async def scenario():
        handlers = ManualHandlers()
        peer = Peer(*handlers.routes())
        peer.send(heartbeat(1))
        peer.sweep(5000)
        peer.sweep(5000)
        assert not peer.transport.closing
        handlers.finish(1)
        await run_pending()
        peer.sweep(601)
        assert peer.transport.closing

    run(scenario)


def test_closed_connection_is_aborted_after_linger_seconds():
    peer = Peer(HEARTBEAT_ROUTE)
    peer.send(heartbeat(1))
    peer.sweep(1)
    peer.connection.close()
    peer.sweep(5)
    assert not peer.transport.aborted
    peer.sweep(1)
    assert peer.transport.aborted


def test_stopped_connection_completes_requests_in_flight_and_closes():
    async def scenario():
        handlers = ManualHandlers()
        peer = Peer(*handlers.routes())
        peer.send(*map(heartbeat, (1, 2, 3, 4)))
        peer.connection.stop()
        assert not peer.transport.closing
        handlers.finish(1, 2, 3)
        await run_pending()
        assert handlers.dispatched == [1, 2, 3], "the fourth had not been begun"
        assert peer.transport.answered == [1, 2, 3]
        assert peer.transport.closing

    run(scenario)


def test_stopped_idle_connection_closes_at_once():
    peer = Peer(HEARTBEAT_ROUTE)
    peer.connection.stop()
    assert peer.transport.closing


def test_many_small_requests_in_one_read_are_all_answered():
    peer = Peer(HEARTBEAT_ROUTE)
    stream = b"".join(map(heartbeat, range(RECEIVE_BYTES // len(heartbeat(0)) + 50)))
    peer.send(stream)
    assert peer.transport.answered == list(range(len(stream) // len(heartbeat(0))))
