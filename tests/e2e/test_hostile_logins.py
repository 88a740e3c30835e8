"""Hostile logins: malformed tokens, password guessing, and logins that never complete."""

import random
import threading
import time
from base64 import b64encode, urlsafe_b64encode
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafscale.protocol.messages.produce import PRODUCE
from services.attack import SECURE, TIMEOUT_S, AttackHarness
from services.secured_broker import ADMIN, MECHANISMS
from services.waiting import wait_until
from services.wire import batch_of, produce_request

pytestmark = pytest.mark.timeout(120)

FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
SECRET = "a-guess-that-no-log-may-hold"  # noqa: S105 - it opens nothing.
brief = settings(max_examples=40, suppress_health_check=list(HealthCheck), database=None)


def _json(text):
    return urlsafe_b64encode(text.encode()).rstrip(b"=")


JWT_HEADER = _json('{"alg":"ES256","kid":"a key of a test"}')
PIECES = {
    # Only passwords are secret: logs contain the user name of a failed login.
    "PLAIN": [
        b"\0",
        b"\0admin\0",
        b"admin",
        b"\0user\0" + SECRET.encode(),
        b"\xff\xfe",
        "ü".encode(),
        b"\0" * 9,
    ],
    "SCRAM-SHA-256": [
        b"n,,",
        b"n=admin,",
        b"r=abc",
        b"r=,",
        b"c=biws,",
        b"p=AAAA",
        b"y,,",
        b"p=tls-unique,,",
        b",a=,",
        b"n=*,",
        b"=2C",
        b"=3D",
        b"tokenauth=true",
        b"m=ext,",
        b"i=1",
        SECRET.encode(),
        b"\0",
        b"\xff",
    ],
    "OAUTHBEARER": [
        b"n,,\x01auth=Bearer ",
        b"n,a=admin,\x01auth=Bearer ",
        b"\x01\x01",
        b"\x01",
        b".",
        b"auth=",
        JWT_HEADER,
        _json('{"alg":"none"}'),
        _json('{"alg":["ES256"],"kid":{"a":1}}'),
        _json('{"sub":"admin","exp":1e400}'),
        _json("[" * 3000),
        _json("{}"),
        SECRET.encode(),
        b"\xff",
        b"host=x\x01",
    ],
}
PIECES["SCRAM-SHA-512"] = PIECES["SCRAM-SHA-256"]


@pytest.fixture(scope="module")
def attack(tmp_path_factory):
    # Failed logins are expected here, so they should not be delayed.
    hasty = {
        "sasl_failed_authentication_delay_ms": "1",
        "sasl_failed_authentication_delay_max_ms": "2",
    }
    with AttackHarness(tmp_path_factory.mktemp("attack"), **hasty) as running:
        running.secrets.add(SECRET)
        yield running


def tokens(mechanism):
    created = st.lists(st.sampled_from(PIECES[mechanism]), max_size=8).map(b"".join)
    return created | st.binary(max_size=100)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_malformed_tokens_fail_authentication(attack, mechanism):
    """The response is SASL_AUTHENTICATION_FAILED or a further challenge."""

    @brief
    @given(st.lists(tokens(mechanism), min_size=1, max_size=3))
    def try_tokens(output):
        with attack.connect() as connection:
            assert connection.handshake(mechanism).error_code == 0
            for token in output:
                response = connection.authenticate(token)
                assert response.error_code in {0, FAILED}
                if response.error_code:
                    assert connection.is_closed_by_broker()
                    return
            connection.send(PRODUCE, 9, produce_request("topic", b""))
            assert connection.read_until_closed() == b"", (
                "requests before authentication are not served"
            )

    with attack.assert_unharmed():
        try_tokens()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_malformed_raw_tokens_close_the_connection(attack, mechanism):
    """SaslHandshake v0 has no error response for tokens."""

    @brief
    @given(st.lists(tokens(mechanism), min_size=1, max_size=3))
    def try_tokens(output):
        with attack.connect() as connection:
            assert connection.handshake(mechanism, version=0).error_code == 0
            with suppress(OSError):  # The broker may close the connection after any token.
                for token in output:
                    connection.send_frame(token)
                connection.socket.shutdown(1)
            connection.read_until_closed()

    with attack.assert_unharmed():
        try_tokens()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("size_bytes", [5_000, 130_000, 500_000])
def test_large_tokens_are_processed_in_bounded_time(attack, mechanism, size_bytes):
    begun = {"PLAIN": b"\0admin\0", "OAUTHBEARER": b"n,,\x01auth=Bearer "}.get(mechanism, b"n,,n=")
    ended = {"OAUTHBEARER": b"\x01\x01"}.get(mechanism, b"")
    with attack.assert_unharmed():
        for filling in (b"a", b"=", b",", b".", b"=2C", b"\x01"):
            with attack.connect() as connection:
                assert connection.handshake(mechanism).error_code == 0
                began = time.monotonic()
                response = connection.authenticate(
                    begun + filling * (size_bytes // len(filling)) + ended
                )
                assert time.monotonic() - began < 1, "no regular expression may backtrack"
                assert bytes(response.token)[:1] == b"{" or response.error_code == FAILED


def test_large_frame_before_login_closes_the_connection(attack):
    with attack.assert_unharmed():
        with attack.connect() as connection:
            connection.socket.sendall((600 << 10).to_bytes(4, "big"))
            assert connection.read_until_closed() == b""
        with attack.admin() as wire:
            wire.create("large")
            assert wire.produce("large", batch_of([bytes(600 << 10)])).error_code == 0


def test_failed_logins_are_delayed_and_logged(tmp_path):
    """Each failure is delayed longer, up to a limit; then a correct password is, too."""
    slow = {
        "sasl_failed_authentication_delay_ms": "50",
        "sasl_failed_authentication_delay_max_ms": "300",
    }
    with AttackHarness(tmp_path, **slow) as attack, attack.assert_unharmed():
        attack.secrets.add(SECRET)
        logged_bytes = attack.broker.log.stat().st_size
        waited_s = []
        for number in range(5):
            with attack.connect() as connection:
                assert connection.handshake("PLAIN").error_code == 0
                began = time.monotonic()
                response = connection.authenticate(f"\0{ADMIN}\0{SECRET}{number}".encode())
                waited_s.append(time.monotonic() - began)
                assert response.error_code == FAILED
                assert SECRET not in (response.error_message or "")
                assert connection.is_closed_by_broker()
        for waited, least in zip(waited_s, [0.05, 0.1, 0.2, 0.3, 0.3], strict=True):
            assert waited >= least
        began = time.monotonic()
        attack.admin().socket.close()
        assert time.monotonic() - began >= 0.3
        logged = attack.broker.logged(logged_bytes)
        assert "login failed" in logged
        assert "127.0.0.1" in logged


def test_errors_do_not_reveal_whether_a_user_exists(attack):
    """This compares the messages, not the timing."""
    nonce = b64encode(random.Random(0).randbytes(12)).decode()
    with attack.assert_unharmed():
        output = set()
        for user in (ADMIN, "mallory"):
            with attack.connect() as connection:
                connection.handshake("PLAIN")
                output.add(connection.authenticate(f"\0{user}\0{SECRET}".encode()).error_message)
            with attack.connect() as connection:
                connection.handshake("SCRAM-SHA-512")
                first = connection.authenticate(f"n,,n={user},r={nonce}".encode())
                assert first.error_code == 0
                challenge = bytes(first.token).decode()
                server_nonce = challenge.split(",")[0]
                proof = b64encode(bytes(64)).decode()
                response = connection.authenticate(f"c=biws,{server_nonce},p={proof}".encode())
                assert response.error_code == FAILED
                output.add(response.error_message)
        assert len(output) == 2, "one message per mechanism"


def test_incomplete_login_times_out(attack):
    """Repeated ApiVersions and SaslHandshake requests do not extend the time."""

    def is_served(connection):
        try:
            connection.call(API_VERSIONS, 3, ApiVersionsRequest("a", "1"))
            return connection.handshake("GSSAPI").error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        except ConnectionError:
            return False

    with attack.assert_unharmed(), attack.connect() as connection:
        assert is_served(connection)
        took_s = wait_until(
            lambda: not is_served(connection), "the connection to close", seconds_max=15
        )
        assert took_s > TIMEOUT_S / 2


def test_clients_log_in_during_concurrent_password_guessing(attack):
    """The guesses come with and without TLS, from many threads."""
    ended = threading.Event()

    def guess(listener):
        config = attack.broker.plain(ADMIN).tls() if listener == SECURE else None
        while not ended.is_set():
            try:
                with attack.connect(listener) as connection:
                    if config is not None:
                        connection.socket = config.wrap_socket(
                            connection.socket, server_hostname="localhost"
                        )
                    connection.handshake("PLAIN")
                    connection.authenticate(f"\0{ADMIN}\0{SECRET}".encode())
            except OSError:
                pass

    with attack.assert_unharmed():
        guessers = [
            threading.Thread(target=guess, args=(listener,))
            for listener in (SECURE, "INSIDE")
            for _ in range(4)
        ]
        for guesser in guessers:
            guesser.start()
        try:
            for _ in range(4):
                attack.admin().socket.close()
                attack.admin(SECURE).socket.close()
        finally:
            ended.set()
            for guesser in guessers:
                guesser.join()
