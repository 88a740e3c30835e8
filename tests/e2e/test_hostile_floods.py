"""Slowness, floods and crowds: what strangers hold is little, and not for long."""

import struct
import threading
import time
from contextlib import suppress

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from services.secured_broker import ADMIN
from services.siege import FRAME_S, INSIDE, OPEN, PLAINTEXT_LISTENERS, SECURE, TIMEOUT_S, Siege
from services.waiting import wait_until
from services.wire import batch_of

pytestmark = pytest.mark.timeout(120)

SLACK_S = 4.0
CROWD = 30


@pytest.fixture(scope="module")
def siege(tmp_path_factory):
    with Siege(tmp_path_factory.mktemp("siege")) as running:
        yield running


def seconds_until_hung_up(wire, pieces):
    """How long a client is suffered that sends a byte now and then."""
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
        raise AssertionError("it is suffered for ever")
    return time.monotonic() - began


@pytest.mark.parametrize("listener", PLAINTEXT_LISTENERS)
def test_a_first_request_that_never_ends(siege, listener):
    endless = [struct.pack(">i", 1000), *[b"\0"] * 300]
    with siege.unharmed(), siege.stranger(listener) as slow:
        assert seconds_until_hung_up(slow, endless) < TIMEOUT_S + SLACK_S


@pytest.mark.parametrize("listener", [INSIDE, SECURE])
def test_a_later_request_that_never_ends(siege, listener):
    """Also of those who are in, and over TLS: frames have to come to an end."""
    endless = [struct.pack(">i", 100_000), *[b"\0"] * 300]
    with siege.unharmed(), siege.admin(listener) as slow:
        took_s = seconds_until_hung_up(slow, endless)
        assert FRAME_S / 2 < took_s < FRAME_S + SLACK_S


def test_who_asks_and_does_not_read_holds_little(siege):
    """Answers that nobody takes fill a socket, and then nothing more is read."""
    with siege.unharmed():
        before_bytes = siege.memory_bytes()
        greedy = [siege.admin() for _ in range(5)]
        for wire in greedy:
            wire.socket.settimeout(0.5)
            try:
                for _ in range(20_000):
                    wire.send(METADATA, 9, MetadataRequest(topics=None))
            except TimeoutError:
                pass
        assert siege.memory_bytes() - before_bytes < 64 << 20
        for wire in greedy:
            wire.socket.close()


def test_a_crowd_that_says_nothing_is_sent_away(siege):
    with siege.unharmed():
        crowd = [siege.call(listener) for listener in (OPEN, INSIDE, SECURE) for _ in range(CROWD)]
        began = time.monotonic()
        for caller in crowd:
            with suppress(ConnectionError):
                assert caller.recv(1) == b""
            caller.close()
        assert time.monotonic() - began < TIMEOUT_S + SLACK_S


@pytest.mark.parametrize("listener", [OPEN, INSIDE, SECURE])
def test_coming_and_going(siege, listener):
    """A thousand connections that end as they begin, some of them rudely."""
    with siege.unharmed():
        for count in range(1000):
            caller = siege.call(listener)
            if count % 3 == 0:
                caller.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER: a reset.
            elif count % 3 == 1:
                caller.sendall(b"\0\0\0\x0a\0\x12\0\0")
            caller.close()


def test_places_are_counted_before_anybody_has_shown_who_they_are(tmp_path):
    """Limits hold for each address and for all, on all listeners together."""
    few = {"network_max_connections_per_ip": "5", "network_connection_timeout": "60000ms"}
    with Siege(tmp_path, **few) as siege:
        wait_until(lambda: siege.connections() == 0, "those who were here first to leave")
        half = [siege.call(listener) for listener in (OPEN, INSIDE, SECURE, SECURE)]
        for caller in half[2:]:
            caller.sendall(siege.hello())
            assert caller.recv(1), "it is answered, so it has come in"
        fifth = siege.stranger(OPEN)
        wait_until(lambda: siege.connections() == 3, "the others to come in")

        def is_let_in():
            with siege.stranger(OPEN) as another:
                try:
                    another.call(API_VERSIONS, 3, ApiVersionsRequest("another", "1"))
                except ConnectionError:
                    return False
                return True

        wait_until(lambda: not is_let_in(), "the sixth to be sent away")
        assert fifth.call(API_VERSIONS, 3, ApiVersionsRequest("fifth", "1")).error_code == 0
        for caller in half:
            caller.close()
        wait_until(is_let_in, "places to be free again")
        fifth.socket.close()


def test_honest_clients_work_while_strangers_crowd(siege):
    """One who produces and reads all the time notices nothing but a moment here and there."""
    ended = threading.Event()

    def crowd(listener):
        while not ended.is_set():
            try:
                with siege.call(listener) as caller:
                    caller.sendall(b"\0\0\0\x20" + bytes(10))
            except OSError:
                pass
            time.sleep(0.005)

    with siege.unharmed(), siege.admin() as wire:
        wire.create("crowded")
        strangers = [
            threading.Thread(target=crowd, args=(listener,)) for listener in (OPEN, INSIDE, SECURE)
        ]
        for stranger in strangers:
            stranger.start()
        try:
            for count in range(100):
                assert wire.produce("crowded", batch_of([b"%d" % count])).error_code == 0
            with siege.admin(SECURE) as newcomer:
                assert len(newcomer.read("crowded")) == 100
        finally:
            ended.set()
            for stranger in strangers:
                stranger.join()


def test_a_flood_does_not_fill_the_log(siege):
    """A few lines a second, and a count of what was left out."""
    with siege.unharmed():
        logged_bytes = siege.broker.log.stat().st_size
        began = time.monotonic()
        for count in range(600):
            with siege.stranger((OPEN, INSIDE, SECURE)[count % 3]) as stranger:
                stranger.say(struct.pack(">hhih", 999, 0, 7, -1))
        seconds = time.monotonic() - began
        lines = len(siege.broker.logged(logged_bytes).splitlines())
        assert lines < 40 * (seconds + 1)


def test_denials_are_counted_not_repeated(siege):
    with siege.unharmed(), siege.stranger(OPEN) as nobody:
        logged_bytes = siege.broker.log.stat().st_size
        for _ in range(300):
            answer = nobody.produce("topic-of-others", batch_of([b"value"]))
            assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        logged = siege.broker.logged(logged_bytes)
        assert "access denied" in logged
        assert logged.count("access denied") < 30
        assert ADMIN not in logged
