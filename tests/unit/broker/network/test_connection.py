"""One connection: order, bounds, silence and farewell, over a transport in memory."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from kafscale.broker.requests.route import route
from kafscale.errors import NotOwnerError
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.protocol.receive_buffer import RECEIVE_BYTES
from unit.broker.harness import Desk, Peer, beat, heartbeat, produce, request, run, turn

BEAT = route(HEARTBEAT, beat)


@given(st.lists(st.integers(min_value=1, max_value=60), max_size=20))
def test_requests_are_answered_however_their_bytes_are_cut(cuts):
    peer = Peer(BEAT)
    stream = b"".join(map(heartbeat, range(10)))
    for cut in cuts:
        peer.send(stream[:cut])
        stream = stream[cut:]
    peer.send(stream)
    assert peer.transport.answered == list(range(10))


def test_a_request_answered_at_once_needs_no_event_loop():
    peer = Peer(BEAT)
    peer.send(heartbeat(5))
    assert peer.transport.answered == [5]
    assert peer.dispatcher.waiting_count == 0


@given(st.permutations([1, 2, 3]))
def test_answers_go_out_in_the_order_of_the_requests(order):
    async def story():
        desk = Desk()
        peer = Peer(*desk.routes())
        peer.send(*map(heartbeat, (1, 2, 3)))
        assert desk.begun == [1, 2, 3]
        for count, number in enumerate(order, 1):
            desk.finish(number)
            await turn()
            done = set(order[:count])
            ready = next((n for n in (1, 2, 3) if n not in done), 4) - 1
            assert peer.transport.answered == list(range(1, ready + 1))

    run(story)


def test_answers_that_are_made_together_are_sent_together():
    async def story():
        desk = Desk()
        peer = Peer(*desk.routes())
        peer.send(*map(heartbeat, range(3)))
        desk.finish(0, 1, 2)
        await turn()
        assert peer.transport.answered == [0, 1, 2]
        assert peer.transport.write_count == 1

    run(story)


def test_a_client_that_leaves_before_its_answers_are_sent_gets_none():
    async def story():
        desk = Desk()
        peer = Peer(*desk.routes())
        peer.send(*map(heartbeat, range(2)))
        desk.finish(0)
        await asyncio.sleep(0)  # It is made, and about to be sent.
        peer.connection.connection_lost(None)
        await turn()
        assert peer.transport.write_count == 0

    run(story)


def test_an_answer_that_is_there_at_once_waits_for_its_turn():
    async def story():
        desk = Desk()
        peer = Peer(BEAT, desk.routes()[1])
        peer.send(produce(1), heartbeat(2))
        await turn()
        assert peer.transport.answered == []
        desk.futures[1].set_result(PRODUCE.response())
        await turn()
        assert peer.transport.answered == [1, 2]

    run(story)


def test_a_request_without_an_answer_leaves_no_gap():
    async def story():
        desk = Desk()
        peer = Peer(*desk.routes())
        peer.send(produce(1, acks=0), heartbeat(2), produce(3, acks=0), heartbeat(4))
        assert desk.begun == [1, 2, 3, 4]
        desk.finish(4, 2)
        await turn()
        assert peer.transport.answered == [2, 4]

    run(story)


def test_no_more_requests_are_begun_and_read_than_may_be_in_flight():
    async def story():
        desk = Desk()
        peer = Peer(*desk.routes())
        peer.send(*map(heartbeat, (1, 2)))
        assert peer.transport.reading
        peer.send(*map(heartbeat, (3, 4, 5)))
        assert desk.begun == [1, 2, 3]
        assert not peer.transport.reading
        desk.finish(2)
        await turn()
        assert desk.begun == [1, 2, 3], "the answer of the second still waits for the first"
        desk.finish(1)
        await turn()
        assert desk.begun == [1, 2, 3, 4, 5]
        assert not peer.transport.reading
        desk.finish(3, 4, 5)
        await turn()
        assert peer.transport.answered == [1, 2, 3, 4, 5]
        assert peer.transport.reading

    run(story)


def test_a_client_that_does_not_take_its_answers_is_not_served_further():
    async def story():
        desk = Desk()
        peer = Peer(*desk.routes())
        peer.send(heartbeat(1))
        peer.connection.pause_writing()
        assert not peer.transport.reading
        peer.send(heartbeat(2))  # Read before the transport heard of the pause.
        assert desk.begun == [1]
        desk.finish(1)
        await turn()
        assert peer.transport.answered == [1]
        assert desk.begun == [1]
        peer.connection.resume_writing()
        assert desk.begun == [1, 2]
        assert peer.transport.reading

    run(story)


def test_producers_are_held_back_until_there_is_relief():
    async def story():
        desk = Desk()
        relief = asyncio.get_running_loop().create_future()
        gate = [None, relief, None]
        peer = Peer(*desk.routes(), congestion=lambda: gate.pop(0))
        peer.send(heartbeat(1), produce(2), produce(3), produce(4))
        assert desk.begun == [1, 2, 3], "a heartbeat passes no gate, the first produce an open one"
        assert not peer.transport.reading
        desk.finish(1)
        await turn()
        assert peer.transport.answered == [1], "answers are not held back"
        assert desk.begun == [1, 2, 3]
        relief.set_result(None)
        await turn()
        assert desk.begun == [1, 2, 3, 4]

    run(story)


@pytest.mark.parametrize("end", ["error", "cancel"])
def test_producers_go_on_also_where_relief_fails(end):
    async def story():
        desk = Desk()
        relief = asyncio.get_running_loop().create_future()
        peer = Peer(*desk.routes(), congestion=lambda: relief)
        peer.send(produce(1))
        assert not peer.transport.reading
        if end == "error":
            relief.set_exception(NotOwnerError("fenced"))
        else:
            relief.cancel()
        await turn()
        assert peer.transport.reading

    run(story)


def test_relief_that_comes_after_the_client_has_gone_changes_nothing():
    async def story():
        desk = Desk()
        relief = asyncio.get_running_loop().create_future()
        peer = Peer(*desk.routes(), congestion=lambda: relief)
        peer.send(produce(1), produce(2))
        peer.transport.close()
        peer.connection.connection_lost(None)
        relief.set_result(None)
        await turn()
        assert desk.begun == [1]

    run(story)


def test_a_client_that_leaves_ends_what_waits_but_no_append():
    async def story():
        desk = Desk()
        peer = Peer(*desk.routes())
        peer.send(heartbeat(1), produce(2))
        peer.transport.close()
        peer.connection.connection_lost(ConnectionResetError())
        await turn()
        assert peer.closed
        assert desk.futures[1].cancelled()
        assert not desk.futures[2].done()
        assert peer.dispatcher.waiting_count == 1
        desk.futures[2].set_result(PRODUCE.response())
        await turn()
        assert peer.dispatcher.waiting_count == 0
        assert peer.transport.answered == []

    run(story)


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", (4097).to_bytes(4, "big")])
def test_a_frame_of_an_impossible_length_closes_the_connection_before_its_body_comes(length):
    peer = Peer(BEAT)
    with capture_logs() as logs:
        peer.send(length)
    assert peer.transport.closing
    assert [event["event"] for event in logs] == ["unreadable frame"]
    assert logs[0]["client"] == "10.0.0.1:50000"


def test_a_request_that_cannot_be_read_closes_the_connection_after_the_answers_before_it():
    peer = Peer(BEAT)
    with capture_logs():
        peer.send(heartbeat(1), produce(2), heartbeat(3))
    assert peer.transport.closing
    assert peer.transport.answered == [1]


def test_an_answer_that_turns_out_impossible_closes_the_connection():
    async def story():
        desk = Desk()
        wait, _ = desk.routes()
        peer = Peer(wait, route(PRODUCE, desk.produce, lambda *_: None))
        peer.send(heartbeat(1), produce(2), heartbeat(3))
        desk.futures[2].set_exception(NotOwnerError("elsewhere"))
        await turn()
        assert not peer.transport.closing
        desk.finish(1)
        await turn()
        assert peer.transport.closing
        assert peer.transport.answered == [1]
        assert desk.futures[3].cancelled()

    with capture_logs():
        run(story)


def test_a_connection_that_asks_nothing_is_closed_though_it_sends_bytes_now_and_then():
    peer = Peer(BEAT)
    long = request(message=HeartbeatRequest(group_id="g" * 100))
    for byte in long[:29]:
        peer.send(bytes([byte]))
        peer.sweep(1)
    assert not peer.transport.closing
    peer.sweep(1.5)
    assert peer.transport.closing


def test_a_connection_may_be_silent_between_requests_but_not_for_ever():
    peer = Peer(BEAT)
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


def test_a_connection_that_waits_for_an_answer_is_not_silent():
    async def story():
        desk = Desk()
        peer = Peer(*desk.routes())
        peer.send(heartbeat(1))
        peer.sweep(5000)
        peer.sweep(5000)
        assert not peer.transport.closing
        desk.finish(1)
        await turn()
        peer.sweep(601)
        assert peer.transport.closing

    run(story)


def test_a_closed_connection_that_does_not_take_its_last_answers_is_cut_off():
    peer = Peer(BEAT)
    peer.send(heartbeat(1))
    peer.sweep(1)
    peer.connection.close()
    peer.sweep(5)
    assert not peer.transport.aborted
    peer.sweep(1)
    assert peer.transport.aborted


def test_a_connection_that_is_stopped_answers_what_is_in_flight_and_closes():
    async def story():
        desk = Desk()
        peer = Peer(*desk.routes())
        peer.send(*map(heartbeat, (1, 2, 3, 4)))
        peer.connection.stop()
        assert not peer.transport.closing
        desk.finish(1, 2, 3)
        await turn()
        assert desk.begun == [1, 2, 3], "the fourth had not been begun"
        assert peer.transport.answered == [1, 2, 3]
        assert peer.transport.closing

    run(story)


def test_a_connection_that_is_stopped_while_idle_closes_at_once():
    peer = Peer(BEAT)
    peer.connection.stop()
    assert peer.transport.closing


def test_many_small_requests_in_one_read_are_all_answered():
    peer = Peer(BEAT)
    stream = b"".join(map(heartbeat, range(RECEIVE_BYTES // len(heartbeat(0)) + 50)))
    peer.send(stream)
    assert peer.transport.answered == list(range(len(stream) // len(heartbeat(0))))
