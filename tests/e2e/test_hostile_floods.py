"""Slow clients, floods and many connections: each uses few resources for a limited time."""

import struct
import threading
import time
from contextlib import suppress

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from services.attack import (
    FRAME_S,
    INSIDE,
    OPEN,
    PLAINTEXT_LISTENERS,
    SECURE,
    TIMEOUT_S,
    AttackHarness,
)
from services.secured_broker import ADMIN
from services.waiting import wait_until
from services.wire import batch_of

pytestmark = pytest.mark.timeout(120)

SLACK_S = 4.0
CROWD = 30


@pytest.fixture(scope="module")
def attack(tmp_path_factory):
    with AttackHarness(tmp_path_factory.mktemp("attack")) as running:
        yield running


def seconds_until_closed(wire, pieces):
    """How long the broker keeps a connection that sends a byte now and then."""
    began = time.monotonic()
    wire.socket.settimeout(0.05)
    for piece in pieces:
        try:
            wire.socket.sendall(piece)
            if not wire.socket.recv(1):
                break
        except TimeoutError:
            continue
        except ConnectionError:
            break
    else:
        raise AssertionError("the broker does not close the connection")
    return time.monotonic() - began


@pytest.mark.parametrize("listener", PLAINTEXT_LISTENERS)
def test_incomplete_first_request_times_out(attack, listener):
    endless = [struct.pack(">i", 1000), *[b"\0"] * 300]
    with attack.assert_unharmed(), attack.connect(listener) as slow:
        assert seconds_until_closed(slow, endless) < TIMEOUT_S + SLACK_S


@pytest.mark.parametrize("listener", [INSIDE, SECURE])
def test_incomplete_later_request_times_out(attack, listener):
    """Also for authenticated clients and over TLS."""
    endless = [struct.pack(">i", 100_000), *[b"\0"] * 300]
    with attack.assert_unharmed(), attack.admin(listener) as slow:
        took_s = seconds_until_closed(slow, endless)
        assert FRAME_S / 2 < took_s < FRAME_S + SLACK_S


def test_client_that_reads_no_responses_uses_bounded_memory(attack):
    """When the socket buffer is full, the broker reads no more requests."""
    with attack.assert_unharmed():
        before_bytes = attack.memory_bytes()
        greedy = [attack.admin() for _ in range(5)]
        for wire in greedy:
            wire.socket.settimeout(0.5)
            try:
                for _ in range(20_000):
                    wire.send(METADATA, 9, MetadataRequest(topics=None))
            except TimeoutError:
                pass
        assert attack.memory_bytes() - before_bytes < 64 << 20
        for wire in greedy:
            wire.socket.close()


def test_idle_connections_without_login_are_closed(attack):
    with attack.assert_unharmed():
        connections = [
            attack.connect_socket(listener)
            for listener in (OPEN, INSIDE, SECURE)
            for _ in range(CROWD)
        ]
        began = time.monotonic()
        for caller in connections:
            with suppress(ConnectionError):
                assert caller.recv(1) == b""
            caller.close()
        assert time.monotonic() - began < TIMEOUT_S + SLACK_S


@pytest.mark.parametrize("listener", [OPEN, INSIDE, SECURE])
def test_many_short_connections_do_not_harm_the_broker(attack, listener):
    """A thousand connections that are closed or reset at once."""
    with attack.assert_unharmed():
        for count in range(1000):
            caller = attack.connect_socket(listener)
            if count % 3 == 0:
                caller.setsockopt(
                    1, 13, struct.pack("ii", 1, 0)
                )  # SO_LINGER with 0 seconds: closing sends a reset.
            elif count % 3 == 1:
                caller.sendall(b"\0\0\0\x0a\0\x12\0\0")
            caller.close()


def test_connection_quotas_apply_before_authentication(tmp_path):
    """Limits apply per address, over all listeners."""
    few = {"network_max_connections_per_ip": "5", "network_connection_timeout": "60000ms"}
    with AttackHarness(tmp_path, **few) as attack:
        wait_until(lambda: attack.connections() == 0, "earlier connections to close")
        half = [attack.connect_socket(listener) for listener in (OPEN, INSIDE, SECURE, SECURE)]
        for caller in half[2:]:
            caller.sendall(attack.client_hello())
            assert caller.recv(1), "a response shows that the connection was accepted"
        fifth = attack.connect(OPEN)
        wait_until(lambda: attack.connections() == 3, "the other connections")

        def is_accepted():
            with attack.connect(OPEN) as another:
                try:
                    another.call(API_VERSIONS, 3, ApiVersionsRequest("another", "1"))
                except ConnectionError:
                    return False
                return True

        wait_until(lambda: not is_accepted(), "the sixth connection to be rejected")
        assert fifth.call(API_VERSIONS, 3, ApiVersionsRequest("fifth", "1")).error_code == 0
        for caller in half:
            caller.close()
        wait_until(is_accepted, "free connections")
        fifth.socket.close()


def test_clients_are_served_during_a_connection_flood(attack):
    """Producing and consuming continue meanwhile."""
    ended = threading.Event()

    def flood(listener):
        while not ended.is_set():
            try:
                with attack.connect_socket(listener) as caller:
                    caller.sendall(b"\0\0\0\x20" + bytes(10))
            except OSError:
                pass
            time.sleep(0.005)

    with attack.assert_unharmed(), attack.admin() as wire:
        wire.create("flooded")
        threads = [
            threading.Thread(target=flood, args=(listener,)) for listener in (OPEN, INSIDE, SECURE)
        ]
        for thread in threads:
            thread.start()
        try:
            for count in range(100):
                assert wire.produce("flooded", batch_of([b"%d" % count])).error_code == 0
            with attack.admin(SECURE) as new_client:
                assert len(new_client.read("flooded")) == 100
        finally:
            ended.set()
            for thread in threads:
                thread.join()


def test_flood_log_lines_are_rate_limited(attack):
    """A few lines per second, with a count of the suppressed ones."""
    with attack.assert_unharmed():
        logged_bytes = attack.broker.log.stat().st_size
        began = time.monotonic()
        for count in range(600):
            with attack.connect((OPEN, INSIDE, SECURE)[count % 3]) as connection:
                connection.send_frame(struct.pack(">hhih", 999, 0, 7, -1))
        seconds = time.monotonic() - began
        lines = len(attack.broker.logged(logged_bytes).splitlines())
        assert lines < 40 * (seconds + 1)


def test_denial_log_lines_are_rate_limited(attack):
    with attack.assert_unharmed(), attack.connect(OPEN) as unauthenticated:
        logged_bytes = attack.broker.log.stat().st_size
        for _ in range(300):
            response = unauthenticated.produce("topic-of-others", batch_of([b"value"]))
            assert response.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        logged = attack.broker.logged(logged_bytes)
        assert "access denied" in logged
        assert logged.count("access denied") < 30
        assert ADMIN not in logged
