"""A connection that requires SASL authentication."""

import asyncio
import gc

import pytest
from structlog.testing import capture_logs

from doubles import virtual_time
from kafscale.broker.security.sasl_login import HOLD_MS_MAX
from kafscale.config.sections.security import Sasl
from kafscale.errors import AuthenticationError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.api_versions import API_VERSIONS
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from unit.broker.harness import heartbeat, produce, request, run_pending
from unit.broker.sasl_harness import MECHANISMS, SASL, SaslPeer

SESSION_MS = 60_000


def run_in_virtual_time(scenario):
    virtual_time.run(lambda _: scenario(), seed=0)


def raw(token):
    return len(token).to_bytes(4, "big") + token


def test_client_is_served_after_authentication():
    peer = SaslPeer()
    peer.request_api_versions()
    assert peer.last(API_VERSIONS, 3).error_code == 0
    assert peer.handshake() == 0
    response = peer.authenticated(b"User:alice")
    assert (response.error_code, response.error_message, bytes(response.token)) == (
        0,
        None,
        b"welcome",
    )
    peer.send(heartbeat(5))
    assert peer.last(HEARTBEAT, 4).throttle_time_ms == 5
    assert peer.audit.events == [("in", "User:alice", "PLAIN")]


@pytest.mark.parametrize("data", [heartbeat(1), produce(1), b"\0\0\0\0", b"\0\0\0\1\0"])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_other_requests_before_authentication_close_the_connection(data, steps):
    peer = SaslPeer()
    if steps > 0:
        peer.handshake()
    if steps > 1:
        peer.authenticated(b"more")
    answered = len(peer.frames())
    with capture_logs() as logs:
        peer.send(data, heartbeat(2))
    assert peer.transport.closing
    assert len(peer.frames()) == answered
    assert [event["event"] for event in logs] == ["request before authentication"]
    assert logs[0]["listener"] == "OUTSIDE"


def test_client_may_retry_after_an_unsupported_mechanism():
    peer = SaslPeer()
    assert peer.handshake("GSSAPI") == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert not peer.transport.closing
    assert peer.log_in().error_code == 0


def test_token_without_handshake_is_refused():
    peer = SaslPeer()
    response = peer.authenticated(b"User:alice")
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
    with capture_logs():
        peer.send(heartbeat(1))
    assert peer.transport.closing


def test_frame_size_limit_is_lower_before_authentication():
    large = request(message=HeartbeatRequest(group_id="g" * 2000))
    assert SASL.receive_bytes_max < len(large)
    peer = SaslPeer()
    peer.log_in()
    peer.send(large)
    assert peer.last(HEARTBEAT, 4).error_code == 0

    peer = SaslPeer()
    peer.handshake()
    with capture_logs() as logs:
        peer.send(large[:4])
    assert peer.transport.closing, "before the body arrives"
    assert [event["event"] for event in logs] == ["unreadable frame"]


def test_connection_is_closed_if_authentication_takes_too_long():
    peer = SaslPeer()
    for _ in range(29):
        peer.request_api_versions()
        peer.sweep(1)
    peer.handshake()
    peer.authenticated(b"more")
    peer.sweep(1)
    assert not peer.transport.closing
    peer.sweep(1)
    assert peer.transport.closing


def test_authenticated_connection_has_the_idle_timeout():
    peer = SaslPeer()
    peer.sweep(29)
    peer.log_in()
    for _ in range(5):
        peer.sweep(500)
        peer.send(heartbeat(1))
        peer.sweep(1)
    assert not peer.transport.closing


def test_failed_login_response_is_delayed_and_reading_paused():
    async def scenario():
        peer = SaslPeer(
            settings=Sasl(enabled_mechanisms=MECHANISMS, failed_authentication_delay_ms=400)
        )
        peer.handshake()
        answered = len(peer.frames())
        peer.authenticate(b"wrong")
        peer.send(request(SASL_AUTHENTICATE, 2), heartbeat(1))  # Pipelined.
        assert not peer.transport.reading
        await asyncio.sleep(0.399)
        assert len(peer.frames()) == answered
        assert not peer.transport.closing
        await asyncio.sleep(0.002)
        assert len(peer.frames()) == answered + 1
        refusal = peer.last(SASL_AUTHENTICATE, 2)
        assert refusal.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert bytes(refusal.token) == b""
        assert peer.transport.closing
        assert [kind for kind, *_ in peer.audit.events] == ["failed"]

    run_in_virtual_time(scenario)


@pytest.mark.parametrize("pipelined", [heartbeat(1), b""], ids=["pipelined", "alone"])
def test_held_handshake_is_answered_before_later_requests(pipelined):
    async def scenario():
        peer = SaslPeer(clock=virtual_time.clock_ms)
        now_ms = virtual_time.clock_ms()
        peer.sessions.backoff.failed(peer.connection.client.host, "mallory", now_ms)
        with capture_logs():
            peer.send(request(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")), pipelined)
            await asyncio.sleep(0.05)
            assert not peer.frames()
            await asyncio.sleep(HOLD_MS_MAX / 1000)
        assert peer.last(SASL_HANDSHAKE, 1).error_code == 0
        assert peer.transport.closing == bool(pipelined)

    run_in_virtual_time(scenario)


def test_disconnect_before_the_delayed_failure_leaves_no_request():
    async def scenario():
        peer = SaslPeer()
        peer.handshake()
        peer.authenticate(b"wrong")
        peer.transport.close()
        peer.connection.connection_lost(ConnectionResetError())
        await asyncio.sleep(1)
        assert not peer.dispatcher._in_flight

    run_in_virtual_time(scenario)


@pytest.mark.parametrize("version", [0, 1])
def test_failed_login_leaves_no_reference_cycles(version):
    """Collecting reference cycles of many failures would stop all clients for a while."""

    async def scenario():
        gc.collect()
        gc.disable()
        try:
            peer = SaslPeer()
            peer.handshake(version=version)
            if version:
                peer.authenticate(b"wrong")
            else:
                peer.send(raw(b"wrong"))
            await asyncio.sleep(1)
            assert peer.transport.closing
            left = [
                result for result in gc.get_objects() if isinstance(result, AuthenticationError)
            ]
            assert left == []
        finally:
            gc.enable()

    run_in_virtual_time(scenario)


def test_raw_tokens_are_answered_by_raw_tokens():
    peer = SaslPeer()
    peer.handshake(version=0)
    peer.send(raw(b"more"))
    assert bytes(peer.frames()[-1]) == b"continue"
    peer.send(raw(b"User:alice"))
    assert bytes(peer.frames()[-1]) == b"welcome"
    peer.send(heartbeat(6))
    assert peer.last(HEARTBEAT, 4).throttle_time_ms == 6


def test_failed_raw_token_closes_the_connection_after_the_delay():
    async def scenario():
        peer = SaslPeer(
            settings=Sasl(enabled_mechanisms=MECHANISMS, failed_authentication_delay_ms=400)
        )
        peer.handshake(version=0)
        answered = len(peer.frames())
        peer.send(raw(b"wrong"), raw(b"User:alice"), heartbeat(1))
        await asyncio.sleep(0.399)
        assert not peer.transport.closing
        await asyncio.sleep(0.002)
        assert peer.transport.closing
        assert len(peer.frames()) == answered

    run_in_virtual_time(scenario)


def test_expired_session_serves_only_reauthentication():
    now_ms = 0
    settings = Sasl(enabled_mechanisms=MECHANISMS, max_reauth_ms=SESSION_MS)
    peer = SaslPeer(lambda: now_ms, settings)
    assert peer.log_in().session_lifetime_ms == SESSION_MS
    now_ms += SESSION_MS
    peer.request_api_versions()
    assert peer.log_in().session_lifetime_ms == SESSION_MS
    peer.send(heartbeat(5))
    assert peer.last(HEARTBEAT, 4).throttle_time_ms == 5
    now_ms += SESSION_MS
    with capture_logs():
        peer.send(heartbeat(6))
    assert peer.transport.closing


def test_reauthentication_as_another_principal_closes_the_connection():
    async def scenario():
        settings = Sasl(enabled_mechanisms=MECHANISMS, max_reauth_ms=SESSION_MS)
        peer = SaslPeer(settings=settings)
        peer.log_in(b"User:alice")
        peer.handshake()
        peer.authenticate(b"User:mallory")
        peer.send(heartbeat(1))
        await asyncio.sleep(10)
        assert peer.last(SASL_AUTHENTICATE, 2).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert peer.transport.closing

    run_in_virtual_time(scenario)


def test_reauthentication_by_another_mechanism_is_refused():
    peer = SaslPeer()
    peer.log_in()
    assert peer.handshake("SCRAM-SHA-512") == ErrorCode.ILLEGAL_SASL_STATE


def test_slow_frame_times_out_despite_progress():
    peer = SaslPeer()
    peer.log_in()
    long = request(message=HeartbeatRequest(group_id="g" * 2000))
    for position in range(61):
        peer.send(long[position : position + 1])
        peer.sweep(1)
    assert not peer.transport.closing
    peer.send(long[61:62])
    peer.sweep(1)
    assert peer.transport.closing


def test_frame_timeout_restarts_with_every_frame():
    peer = SaslPeer()
    peer.log_in()
    stream = heartbeat(0) * 10
    middle = len(heartbeat(0)) // 2
    peer.send(stream[:middle])
    stream = stream[middle:]
    for count in range(9):  # There is always an incomplete frame, but never the same.
        peer.sweep(50)
        peer.send(stream[: len(heartbeat(0))])
        stream = stream[len(heartbeat(0)) :]
        assert not peer.transport.closing, count
    peer.sweep(61)
    peer.sweep(61)
    assert peer.transport.closing


def test_frame_timeout_excludes_time_without_reading():
    async def scenario():
        peer = SaslPeer()
        peer.log_in()
        peer.send(heartbeat(1), heartbeat(2)[:9])
        peer.connection.pause_writing()
        for _ in range(5):
            peer.sweep(100)
        assert not peer.transport.closing
        peer.connection.resume_writing()
        peer.send(heartbeat(2)[9:])
        await run_pending()
        assert peer.transport.answered[-2:] == [1, 2]

    run_in_virtual_time(scenario)


def test_timed_out_connection_is_aborted_after_linger_seconds():
    peer = SaslPeer()
    peer.log_in()
    peer.send(heartbeat(1), heartbeat(2)[:9])
    peer.sweep(1)
    peer.sweep(61)
    assert peer.transport.closing
    peer.sweep(5)
    peer.sweep(6)
    assert peer.transport.aborted
