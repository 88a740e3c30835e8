"""SASL sessions: which requests are allowed when; and the delay of failed logins."""

import pytest

from kafscale.broker.requests.context import ClientInfo
from kafscale.broker.security.sasl_login import (
    ATTEMPT_INTERVAL_MS,
    BACKOFF_ENTRIES_MAX,
    BACKOFF_RESET_MS,
    HOLD_MS_MAX,
    QUEUE_MS_MAX,
    UNAUTHENTICATED_APIS,
    LoginBackoff,
    SaslResult,
)
from kafscale.config.sections.security import Sasl
from kafscale.errors import AuthenticationError, IllegalSaslStateError, UnsupportedMechanismError
from kafscale.protocol.messages.api_versions import API_VERSIONS
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE
from unit.broker.sasl_harness import MECHANISMS, RecordingAuditLog, new_sasl_sessions


class SessionHarness:
    """One session with a manual clock."""

    def __init__(self, **settings):
        self.now_ms = 1_000
        self.audit = RecordingAuditLog()
        self.sessions = new_sasl_sessions(
            lambda: self.now_ms, self.audit, Sasl(enabled_mechanisms=MECHANISMS, **settings)
        )
        self.client = ClientInfo("10.0.0.1", 50_000)
        self.session = self.client.sasl_session = self.sessions.open("OUTSIDE")

    def log_in(self, token=b"User:alice", mechanism="PLAIN"):
        self.session.handshake(self.client, mechanism, 1)
        return self.session.authenticate(self.client, token)


def test_session_allows_only_authentication_before_login():
    harness = SessionHarness()
    allowed = {key for key in range(100) if harness.session.allows(key)}
    assert (
        allowed
        == {API_VERSIONS.key, SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key}
        == UNAUTHENTICATED_APIS
    )
    harness.session.handshake(harness.client, "PLAIN", 1)
    assert not harness.session.allows(PRODUCE.key)
    harness.session.authenticate(harness.client, b"more")
    assert not harness.session.allows(PRODUCE.key)


def test_valid_token_authenticates_the_client():
    harness = SessionHarness()
    assert harness.log_in() == SaslResult(b"welcome")
    assert harness.client.principal.full_name == "User:alice"
    assert harness.session.allows(PRODUCE.key)
    assert harness.audit.events == [("in", "User:alice", "PLAIN")]
    assert not harness.client.is_closing


def test_exchange_may_take_several_tokens():
    harness = SessionHarness()
    harness.session.handshake(harness.client, "SCRAM-SHA-512", 1)
    for _ in range(3):
        assert harness.session.authenticate(harness.client, b"more") == SaslResult(b"continue")
        assert harness.client.principal.full_name == "User:ANONYMOUS"
    assert harness.session.authenticate(harness.client, b"User:bob") == SaslResult(b"welcome")
    assert harness.audit.events == [("in", "User:bob", "SCRAM-SHA-512")]


def test_invalid_token_ends_the_session():
    harness = SessionHarness()
    with pytest.raises(AuthenticationError, match="is not valid"):
        harness.log_in(b"wrong")
    assert harness.client.is_closing
    assert not harness.session.allows(PRODUCE.key)
    assert harness.audit.events == [("failed", "PLAIN", "claimed", "the token is not valid")]
    with pytest.raises(IllegalSaslStateError):
        harness.session.authenticate(harness.client, b"User:alice")
    assert harness.session.principal is None


def test_handshake_may_be_retried_after_an_unsupported_mechanism():
    harness = SessionHarness()
    with pytest.raises(UnsupportedMechanismError):
        harness.session.handshake(harness.client, "GSSAPI", 1)
    assert not harness.client.is_closing
    harness.log_in()
    assert harness.session.allows(PRODUCE.key)


def test_out_of_order_requests_are_refused():
    harness = SessionHarness()
    with pytest.raises(IllegalSaslStateError):
        harness.session.authenticate(harness.client, b"User:alice")
    assert harness.session.principal is None
    harness.session.handshake(harness.client, "PLAIN", 1)
    with pytest.raises(IllegalSaslStateError):
        harness.session.handshake(harness.client, "PLAIN", 1)


def test_handshake_v0_expects_raw_tokens_until_authenticated():
    harness = SessionHarness()
    harness.session.handshake(harness.client, "SCRAM-SHA-512", 0)
    assert harness.session.expects_raw_token
    harness.session.authenticate(harness.client, b"more")
    assert harness.session.expects_raw_token
    harness.session.authenticate(harness.client, b"User:alice")
    assert not harness.session.expects_raw_token


def test_session_does_not_expire_by_default():
    harness = SessionHarness()
    assert harness.log_in().session_lifetime_ms == 0
    harness.now_ms += 10**12
    assert harness.session.allows(PRODUCE.key)


@pytest.mark.parametrize(
    ("session_ms_max", "token", "lifetime_ms"),
    [
        (5_000, b"User:alice", 5_000),
        (5_000, b"User:alice 4000", 3_000),
        (5_000, b"User:alice 9000", 5_000),
        (0, b"User:alice 9000", 8_000),
        (0, b"User:alice 1000", 1),  # An expired token still has a lifetime of 1 ms.
    ],
)
def test_session_expires_by_settings_or_token(session_ms_max, token, lifetime_ms):
    harness = SessionHarness(max_reauth_ms=session_ms_max)
    assert harness.log_in(token).session_lifetime_ms == lifetime_ms
    harness.now_ms += lifetime_ms - 1
    assert harness.session.allows(PRODUCE.key) == (token != b"User:alice 1000")
    harness.now_ms += 1
    assert not harness.session.allows(PRODUCE.key)
    assert harness.session.allows(SASL_HANDSHAKE.key)


@pytest.mark.parametrize("late_ms", [0, 60_000])
def test_reauthentication_renews_the_session(late_ms):
    harness = SessionHarness(max_reauth_ms=5_000)
    harness.log_in()
    harness.now_ms += 4_000 + late_ms
    assert harness.log_in().session_lifetime_ms == 5_000
    harness.now_ms += 4_999
    assert harness.session.allows(PRODUCE.key)
    harness.now_ms += 1
    assert not harness.session.allows(PRODUCE.key)


def test_session_stays_valid_during_reauthentication():
    harness = SessionHarness(max_reauth_ms=5_000)
    harness.log_in()
    harness.session.handshake(harness.client, "PLAIN", 1)
    harness.session.authenticate(harness.client, b"more")
    assert harness.session.allows(PRODUCE.key)
    harness.now_ms += 5_000
    assert not harness.session.allows(PRODUCE.key)


def test_reauthentication_requires_the_same_principal():
    harness = SessionHarness(max_reauth_ms=5_000)
    harness.log_in(b"User:alice")
    with pytest.raises(AuthenticationError, match="same"):
        harness.log_in(b"User:mallory")
    assert harness.client.is_closing
    assert not harness.session.allows(PRODUCE.key)
    assert harness.client.principal.full_name == "User:alice", (
        "requests in flight keep their principal"
    )


def test_reauthentication_requires_the_same_mechanism():
    harness = SessionHarness(max_reauth_ms=5_000)
    harness.log_in(mechanism="PLAIN")
    with pytest.raises(IllegalSaslStateError, match="mechanism"):
        harness.session.handshake(harness.client, "SCRAM-SHA-512", 1)
    with pytest.raises(IllegalSaslStateError):
        harness.session.authenticate(harness.client, b"User:alice")


def test_failed_reauthentication_ends_the_session():
    harness = SessionHarness(max_reauth_ms=5_000)
    harness.log_in()
    with pytest.raises(AuthenticationError):
        harness.log_in(b"wrong")
    assert not harness.session.allows(PRODUCE.key)
    assert harness.client.is_closing


def test_delay_grows_with_failures_of_an_address():
    harness = SessionHarness(
        failed_authentication_delay_ms=100, failed_authentication_delay_ms_max=350
    )

    def failed(host):
        client = ClientInfo(host, 50_000)
        login = harness.sessions.open("OUTSIDE")
        login.handshake(client, "PLAIN", 1)
        with pytest.raises(AuthenticationError):
            login.authenticate(client, b"wrong")
        return login.delay_ms

    assert [failed("10.0.0.1") for _ in range(4)] == [100, 200, 350, 350]
    assert failed("10.0.0.2") == 350, "not shorter than attempts for the same user are held"


def test_failure_with_acknowledgement_is_logged_once():
    harness = SessionHarness(failed_authentication_delay_ms=100)
    assert harness.log_in(b"refused") == SaslResult(b"say yes")
    events = [("failed", "PLAIN", "claimed", "that is not enough")]
    assert (harness.audit.events, harness.session.delay_ms) == (events, 100)
    assert not harness.session.allows(PRODUCE.key)
    with pytest.raises(AuthenticationError):
        harness.session.authenticate(harness.client, b"wrong")
    assert (harness.audit.events, harness.session.delay_ms) == (events, 100)
    assert harness.client.is_closing


def test_only_the_first_login_is_charged_as_a_connection():
    harness = SessionHarness(max_reauth_ms=5_000)
    principals = []
    harness.sessions.throttled_ms = lambda principal: principals.append(principal.full_name) or 250
    harness.log_in()
    assert harness.client.throttled_ms == 250
    harness.client.throttled_ms = 0
    harness.log_in()
    assert (harness.client.throttled_ms, principals) == (0, ["User:alice"])


# --- backoff ------------------------------------------------------------------------------------


def test_backoff_doubles_per_address_up_to_the_maximum():
    backoff = LoginBackoff(100, 1_000)
    assert [backoff.failed("a", "", 0) for _ in range(6)] == [100, 200, 400, 800, 1_000, 1_000]
    assert backoff.failed("b", "", 0) == 100


def test_backoff_is_reset_after_a_while_without_failures():
    backoff = LoginBackoff(100, 1_000)
    backoff.failed("a", "", 0)
    backoff.failed("a", "", 0)
    assert backoff.failed("a", "", BACKOFF_RESET_MS + 1) == 100


def test_backoff_evicts_the_address_that_failed_longest_ago():
    backoff = LoginBackoff(100, 1_000)
    for number in range(BACKOFF_ENTRIES_MAX):
        backoff.failed(str(number), "", 0)
    backoff.failed("0", "", 1)  # No longer the one that failed longest ago.
    backoff.failed("new", "", 2)
    assert backoff.failed("0", "", 3) == 400
    assert backoff.failed("1", "", 3) == 100


def test_backoff_stays_bounded_for_many_failures():
    backoff = LoginBackoff(100, 1_000)
    assert {backoff.failed("a", "", 0) for _ in range(200)} == {100, 200, 400, 800, 1_000}


def test_attempts_after_failures_of_an_address_are_held_and_take_turns():
    backoff = LoginBackoff(100, 10_000)
    assert backoff.hold_attempt("a", 0) == 0
    now_ms = 0
    for expected_ms in (100, 200, 400, 800, 1_600, HOLD_MS_MAX, HOLD_MS_MAX):
        backoff.failed("a", "", now_ms)
        assert backoff.hold_attempt("a", now_ms) == expected_ms
        now_ms += HOLD_MS_MAX
    assert backoff.hold_attempt("b", now_ms) == 0
    holds_ms = [backoff.hold_attempt("a", now_ms) for _ in range(101)]
    assert holds_ms[:20] == [HOLD_MS_MAX] * 20
    assert holds_ms[20:] == list(range(HOLD_MS_MAX, QUEUE_MS_MAX + 1, ATTEMPT_INTERVAL_MS))
    for _ in range(3):
        with pytest.raises(AuthenticationError, match="too many logins"):
            backoff.hold_attempt("a", now_ms)
    assert backoff.hold_attempt("a", now_ms + ATTEMPT_INTERVAL_MS) == QUEUE_MS_MAX
    assert backoff.hold_attempt("a", now_ms + BACKOFF_RESET_MS) == 0


def test_attempts_for_a_user_are_held_wherever_they_come_from():
    backoff = LoginBackoff(100, 10_000)
    delays_ms = [backoff.failed(str(number), "alice", 0) for number in range(8)]
    assert delays_ms == [100, 100, 200, 400, 800, 1_600, HOLD_MS_MAX, HOLD_MS_MAX]
    assert backoff.hold_user("alice", 0) == HOLD_MS_MAX, "not longer than a failure"
    assert backoff.hold_user("bob", 0) == 0


def test_silence_does_not_tell_that_a_password_is_right():
    harness = SessionHarness()

    def attempt(host, token):
        client = ClientInfo(host, 50_000)
        session = harness.sessions.open("OUTSIDE")
        session.handshake(client, "PLAIN", 1)
        held_ms = session.hold_ms
        try:
            session.authenticate(client, token)
        except AuthenticationError:
            return held_ms, session.delay_ms
        return held_ms, session.hold_ms

    attempt("10.0.0.1", b"wrong")
    assert attempt("10.0.0.1", b"wrong") == (100, 200)
    assert attempt("10.0.0.1", b"User:alice") == (200, 200)
    assert attempt("10.0.0.2", b"User:alice") == (0, 200)
    assert attempt("10.0.0.3", b"wrong") == (0, 200)


def test_reauthentication_is_not_held():
    harness = SessionHarness()
    harness.log_in()
    harness.sessions.backoff.failed(harness.client.host, "other", harness.now_ms)
    harness.log_in()
    assert harness.session.hold_ms == 0
