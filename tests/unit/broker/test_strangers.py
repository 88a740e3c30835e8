"""A connection whose client has to log in: what it gets before, after, and instead."""

import asyncio
import gc

import pytest
from structlog.testing import capture_logs

from kafscale.config.sections.security import Sasl
from kafscale.errors import AuthenticationError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.api_versions import API_VERSIONS
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE
from kafscale.testing import virtual_time
from unit.broker.harness import heartbeat, produce, request, turn
from unit.broker.login_stage import OFFERED, SASL, Stranger

SESSION_MS = 60_000


def play(scenario):
    virtual_time.run(lambda _: scenario(), seed=0)


def bare(token):
    return len(token).to_bytes(4, "big") + token


def test_who_logs_in_is_served():
    stranger = Stranger()
    stranger.ask_versions()
    assert stranger.last(API_VERSIONS, 3).error_code == 0
    assert stranger.handshake() == 0
    answer = stranger.authenticated(b"User:alice")
    assert (answer.error_code, answer.error_message, bytes(answer.token)) == (0, None, b"welcome")
    stranger.send(heartbeat(5))
    assert stranger.last(HEARTBEAT, 4).throttle_time_ms == 5
    assert stranger.audit.told == [("in", "User:alice", "PLAIN")]


@pytest.mark.parametrize("ask", [heartbeat(1), produce(1), b"\0\0\0\0", b"\0\0\0\1\0"])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_nothing_else_is_served_before(ask, steps):
    stranger = Stranger()
    if steps > 0:
        stranger.handshake()
    if steps > 1:
        stranger.authenticated(b"more")
    answered = len(stranger.frames())
    with capture_logs() as logs:
        stranger.send(ask, heartbeat(2))
    assert stranger.transport.closing
    assert len(stranger.frames()) == answered
    assert [event["event"] for event in logs] == ["request without a login"]
    assert logs[0]["listener"] == "OUTSIDE"


def test_a_mechanism_that_is_not_offered_is_answered_with_those_that_are():
    stranger = Stranger()
    assert stranger.handshake("GSSAPI") == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert not stranger.transport.closing
    assert stranger.log_in().error_code == 0


def test_a_token_out_of_turn_is_refused():
    stranger = Stranger()
    answer = stranger.authenticated(b"User:alice")
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    with capture_logs():
        stranger.send(heartbeat(1))
    assert stranger.transport.closing


def test_the_largest_frame_before_a_login_is_small_and_afterwards_is_not():
    large = request(message=HeartbeatRequest(group_id="g" * 2000))
    assert SASL.receive_bytes_max < len(large)
    stranger = Stranger()
    stranger.log_in()
    stranger.send(large)
    assert stranger.last(HEARTBEAT, 4).error_code == 0

    stranger = Stranger()
    stranger.handshake()
    with capture_logs() as logs:
        stranger.send(large[:4])
    assert stranger.transport.closing, "before its body comes"
    assert [event["event"] for event in logs] == ["unreadable frame"]


def test_who_is_not_in_soon_is_sent_away_whatever_it_asks_meanwhile():
    stranger = Stranger()
    for _ in range(29):
        stranger.ask_versions()
        stranger.sweep(1)
    stranger.handshake()
    stranger.authenticated(b"more")
    stranger.sweep(1)
    assert not stranger.transport.closing
    stranger.sweep(1)
    assert stranger.transport.closing


def test_who_is_in_may_take_its_time():
    stranger = Stranger()
    stranger.sweep(29)
    stranger.log_in()
    for _ in range(5):
        stranger.sweep(500)
        stranger.send(heartbeat(1))
        stranger.sweep(1)
    assert not stranger.transport.closing


def test_a_failed_login_is_answered_late_and_nothing_is_read_meanwhile():
    async def scenario():
        stranger = Stranger(settings=Sasl(enabled_mechanisms=OFFERED, failed_delay_ms=400))
        stranger.handshake()
        answered = len(stranger.frames())
        stranger.authenticate(b"wrong")
        stranger.send(request(SASL_AUTHENTICATE, 2), heartbeat(1))  # They were on their way.
        assert not stranger.transport.reading
        await asyncio.sleep(0.399)
        assert len(stranger.frames()) == answered
        assert not stranger.transport.closing
        await asyncio.sleep(0.002)
        assert len(stranger.frames()) == answered + 1
        refusal = stranger.last(SASL_AUTHENTICATE, 2)
        assert refusal.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert bytes(refusal.token) == b""
        assert stranger.transport.closing
        assert [kind for kind, *_ in stranger.audit.told] == ["failed"]

    play(scenario)


def test_a_client_that_does_not_wait_for_its_refusal_leaves_nothing_behind():
    async def scenario():
        stranger = Stranger()
        stranger.handshake()
        stranger.authenticate(b"wrong")
        stranger.transport.close()
        stranger.connection.connection_lost(ConnectionResetError())
        await asyncio.sleep(1)
        assert stranger.dispatcher.waiting_count == 0

    play(scenario)


@pytest.mark.parametrize("version", [0, 1])
def test_a_failed_login_leaves_nothing_to_the_garbage_collector(version):
    """Circles that many failures leave would stop everybody while they are collected."""

    async def scenario():
        gc.collect()
        gc.disable()
        try:
            stranger = Stranger()
            stranger.handshake(version=version)
            if version:
                stranger.authenticate(b"wrong")
            else:
                stranger.send(bare(b"wrong"))
            await asyncio.sleep(1)
            assert stranger.transport.closing
            left = [found for found in gc.get_objects() if isinstance(found, AuthenticationError)]
            assert left == []
        finally:
            gc.enable()

    play(scenario)


def test_bare_tokens_are_answered_by_bare_tokens():
    stranger = Stranger()
    stranger.handshake(version=0)
    stranger.send(bare(b"more"))
    assert bytes(stranger.frames()[-1]) == b"go on"
    stranger.send(bare(b"User:alice"))
    assert bytes(stranger.frames()[-1]) == b"welcome"
    stranger.send(heartbeat(6))
    assert stranger.last(HEARTBEAT, 4).throttle_time_ms == 6


def test_a_bare_token_that_does_not_convince_is_answered_by_silence_as_late():
    async def scenario():
        stranger = Stranger(settings=Sasl(enabled_mechanisms=OFFERED, failed_delay_ms=400))
        stranger.handshake(version=0)
        answered = len(stranger.frames())
        stranger.send(bare(b"wrong"), bare(b"User:alice"), heartbeat(1))
        await asyncio.sleep(0.399)
        assert not stranger.transport.closing
        await asyncio.sleep(0.002)
        assert stranger.transport.closing
        assert len(stranger.frames()) == answered

    play(scenario)


def test_after_the_end_of_a_session_only_another_login_is_served():
    now_ms = 0
    settings = Sasl(enabled_mechanisms=OFFERED, max_reauth_ms=SESSION_MS)
    stranger = Stranger(lambda: now_ms, settings)
    assert stranger.log_in().session_lifetime_ms == SESSION_MS
    now_ms += SESSION_MS
    stranger.ask_versions()
    assert stranger.log_in().session_lifetime_ms == SESSION_MS
    stranger.send(heartbeat(5))
    assert stranger.last(HEARTBEAT, 4).throttle_time_ms == 5
    now_ms += SESSION_MS
    with capture_logs():
        stranger.send(heartbeat(6))
    assert stranger.transport.closing


def test_another_login_by_somebody_else_is_refused_and_ends_the_connection():
    async def scenario():
        settings = Sasl(enabled_mechanisms=OFFERED, max_reauth_ms=SESSION_MS)
        stranger = Stranger(settings=settings)
        stranger.log_in(b"User:alice")
        stranger.handshake()
        stranger.authenticate(b"User:mallory")
        stranger.send(heartbeat(1))
        await asyncio.sleep(10)
        assert (
            stranger.last(SASL_AUTHENTICATE, 2).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        )
        assert stranger.transport.closing

    play(scenario)


def test_another_login_by_another_mechanism_is_refused():
    stranger = Stranger()
    stranger.log_in()
    assert stranger.handshake("SCRAM-SHA-512") == ErrorCode.ILLEGAL_SASL_STATE


def test_a_frame_that_never_ends_is_cut_also_if_bytes_come_now_and_then():
    stranger = Stranger()
    stranger.log_in()
    long = request(message=HeartbeatRequest(group_id="g" * 2000))
    for position in range(61):
        stranger.send(long[position : position + 1])
        stranger.sweep(1)
    assert not stranger.transport.closing
    stranger.send(long[61:62])
    stranger.sweep(1)
    assert stranger.transport.closing


def test_every_frame_has_its_time():
    stranger = Stranger()
    stranger.log_in()
    stream = heartbeat(0) * 10
    middle = len(heartbeat(0)) // 2
    stranger.send(stream[:middle])
    stream = stream[middle:]
    for count in range(9):  # One always ends and the next begins, which is always under way.
        stranger.sweep(50)
        stranger.send(stream[: len(heartbeat(0))])
        stream = stream[len(heartbeat(0)) :]
        assert not stranger.transport.closing, count
    stranger.sweep(61)
    stranger.sweep(61)
    assert stranger.transport.closing


def test_a_frame_that_drags_because_we_do_not_read_is_not_cut():
    async def scenario():
        stranger = Stranger()
        stranger.log_in()
        stranger.send(heartbeat(1), heartbeat(2)[:9])
        stranger.connection.pause_writing()
        for _ in range(5):
            stranger.sweep(100)
        assert not stranger.transport.closing
        stranger.connection.resume_writing()
        stranger.send(heartbeat(2)[9:])
        await turn()
        assert stranger.transport.answered[-2:] == [1, 2]

    play(scenario)


def test_who_drags_a_frame_and_takes_no_answers_is_cut_off_in_the_end():
    stranger = Stranger()
    stranger.log_in()
    stranger.send(heartbeat(1), heartbeat(2)[:9])
    stranger.sweep(1)
    stranger.sweep(61)
    assert stranger.transport.closing
    stranger.sweep(5)
    stranger.sweep(6)
    assert stranger.transport.aborted
