"""The login of one connection: what is served when, and to whom."""

import pytest

from kafscale.broker.requests.context import ClientInfo
from kafscale.broker.security.sasl_login import OPEN_APIS, Passed
from kafscale.config.sections.security import Sasl
from kafscale.errors import AuthenticationError, IllegalSaslStateError, UnsupportedMechanismError
from kafscale.protocol.messages.api_versions import API_VERSIONS
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE
from unit.broker.login_stage import OFFERED, Audience, new_logins


class Story:
    """One login at a time that the test moves."""

    def __init__(self, **settings):
        self.now_ms = 1_000
        self.audit = Audience()
        self.logins = new_logins(
            lambda: self.now_ms, self.audit, Sasl(enabled_mechanisms=OFFERED, **settings)
        )
        self.client = ClientInfo("10.0.0.1", 50_000)
        self.login = self.client.login = self.logins.open("OUTSIDE")

    def enter(self, token=b"User:alice", mechanism="PLAIN"):
        self.login.handshake(self.client, mechanism, 1)
        return self.login.authenticate(self.client, token)


def test_before_somebody_is_in_nothing_is_admitted_but_what_logging_in_takes():
    story = Story()
    admitted = {key for key in range(100) if story.login.admits(key)}
    assert admitted == {API_VERSIONS.key, SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key} == OPEN_APIS
    story.login.handshake(story.client, "PLAIN", 1)
    assert not story.login.admits(PRODUCE.key)
    story.login.authenticate(story.client, b"more")
    assert not story.login.admits(PRODUCE.key)


def test_a_token_that_convinces_lets_its_owner_in():
    story = Story()
    assert story.enter() == Passed(b"welcome")
    assert story.client.identity.full_name == "User:alice"
    assert story.login.admits(PRODUCE.key)
    assert story.audit.told == [("in", "User:alice", "PLAIN")]
    assert not story.client.is_leaving


def test_an_exchange_may_take_several_tokens():
    story = Story()
    story.login.handshake(story.client, "SCRAM-SHA-512", 1)
    for _ in range(3):
        assert story.login.authenticate(story.client, b"more") == Passed(b"go on")
        assert story.client.identity.full_name == "User:ANONYMOUS"
    assert story.login.authenticate(story.client, b"User:bob") == Passed(b"welcome")
    assert story.audit.told == [("in", "User:bob", "SCRAM-SHA-512")]


def test_a_token_that_does_not_convince_ends_it_for_good():
    story = Story()
    with pytest.raises(AuthenticationError, match="does not convince"):
        story.enter(b"wrong")
    assert story.client.is_leaving
    assert not story.login.admits(PRODUCE.key)
    assert story.audit.told == [("failed", "PLAIN", "somebody", "that does not convince")]
    with pytest.raises(IllegalSaslStateError):
        story.login.authenticate(story.client, b"User:alice")
    assert story.login.identity is None


def test_a_mechanism_that_is_not_offered_is_refused_and_another_may_follow():
    story = Story()
    with pytest.raises(UnsupportedMechanismError):
        story.login.handshake(story.client, "GSSAPI", 1)
    assert not story.client.is_leaving
    story.enter()
    assert story.login.admits(PRODUCE.key)


def test_what_is_out_of_turn_is_refused():
    story = Story()
    with pytest.raises(IllegalSaslStateError):
        story.login.authenticate(story.client, b"User:alice")
    assert story.login.identity is None
    story.login.handshake(story.client, "PLAIN", 1)
    with pytest.raises(IllegalSaslStateError):
        story.login.handshake(story.client, "PLAIN", 1)


def test_after_the_oldest_handshake_tokens_are_bare_until_somebody_is_in():
    story = Story()
    story.login.handshake(story.client, "SCRAM-SHA-512", 0)
    assert story.login.is_bare
    story.login.authenticate(story.client, b"more")
    assert story.login.is_bare
    story.login.authenticate(story.client, b"User:alice")
    assert not story.login.is_bare


def test_a_session_without_an_end_has_none():
    story = Story()
    assert story.enter().session_lifetime_ms == 0
    story.now_ms += 10**12
    assert story.login.admits(PRODUCE.key)


@pytest.mark.parametrize(
    ("session_ms_max", "token", "lifetime_ms"),
    [
        (5_000, b"User:alice", 5_000),
        (5_000, b"User:alice 4000", 3_000),
        (5_000, b"User:alice 9000", 5_000),
        (0, b"User:alice 9000", 8_000),
        (0, b"User:alice 1000", 1),  # What has just ended is told as an end that is near.
    ],
)
def test_a_session_lasts_as_long_as_the_settings_and_the_token_say(
    session_ms_max, token, lifetime_ms
):
    story = Story(max_reauth_ms=session_ms_max)
    assert story.enter(token).session_lifetime_ms == lifetime_ms
    story.now_ms += lifetime_ms - 1
    assert story.login.admits(PRODUCE.key) == (token != b"User:alice 1000")
    story.now_ms += 1
    assert not story.login.admits(PRODUCE.key)
    assert story.login.admits(SASL_HANDSHAKE.key)


@pytest.mark.parametrize("late_ms", [0, 60_000])
def test_who_logs_in_again_begins_another_session_before_or_after_the_end(late_ms):
    story = Story(max_reauth_ms=5_000)
    story.enter()
    story.now_ms += 4_000 + late_ms
    assert story.enter().session_lifetime_ms == 5_000
    story.now_ms += 4_999
    assert story.login.admits(PRODUCE.key)
    story.now_ms += 1
    assert not story.login.admits(PRODUCE.key)


def test_the_former_session_holds_while_somebody_logs_in_again():
    story = Story(max_reauth_ms=5_000)
    story.enter()
    story.login.handshake(story.client, "PLAIN", 1)
    story.login.authenticate(story.client, b"more")
    assert story.login.admits(PRODUCE.key)
    story.now_ms += 5_000
    assert not story.login.admits(PRODUCE.key)


def test_who_logs_in_again_has_to_be_the_same():
    story = Story(max_reauth_ms=5_000)
    story.enter(b"User:alice")
    with pytest.raises(AuthenticationError, match="same"):
        story.enter(b"User:mallory")
    assert story.client.is_leaving
    assert not story.login.admits(PRODUCE.key)
    assert story.client.identity.full_name == "User:alice", "what is in flight is still hers"


def test_who_logs_in_again_has_to_use_the_same_mechanism():
    story = Story(max_reauth_ms=5_000)
    story.enter(mechanism="PLAIN")
    with pytest.raises(IllegalSaslStateError, match="mechanism"):
        story.login.handshake(story.client, "SCRAM-SHA-512", 1)
    with pytest.raises(IllegalSaslStateError):
        story.login.authenticate(story.client, b"User:alice")


def test_a_second_login_that_fails_ends_the_first_one_too():
    story = Story(max_reauth_ms=5_000)
    story.enter()
    with pytest.raises(AuthenticationError):
        story.enter(b"wrong")
    assert not story.login.admits(PRODUCE.key)
    assert story.client.is_leaving


def test_failures_from_an_address_are_answered_later_every_time():
    story = Story(failed_delay_ms=100, failed_delay_ms_max=350)

    def failed(host):
        client = ClientInfo(host, 50_000)
        login = story.logins.open("OUTSIDE")
        login.handshake(client, "PLAIN", 1)
        with pytest.raises(AuthenticationError):
            login.authenticate(client, b"wrong")
        return login.delay_ms

    assert [failed("10.0.0.1") for _ in range(4)] == [100, 200, 350, 350]
    assert failed("10.0.0.2") == 100


def test_a_refusal_that_is_to_be_acknowledged_is_told_and_counted_once():
    story = Story(failed_delay_ms=100)
    assert story.enter(b"refused") == Passed(b"say yes")
    told = [("failed", "PLAIN", "somebody", "that is not enough")]
    assert (story.audit.told, story.login.delay_ms) == (told, 100)
    assert not story.login.admits(PRODUCE.key)
    with pytest.raises(AuthenticationError):
        story.login.authenticate(story.client, b"wrong")
    assert (story.audit.told, story.login.delay_ms) == (told, 100)
    assert story.client.is_leaving


def test_only_the_first_login_of_a_connection_counts_as_a_new_connection():
    story = Story(max_reauth_ms=5_000)
    asked = []
    story.logins.throttled_ms = lambda identity: asked.append(identity.full_name) or 250
    story.enter()
    assert story.client.throttled_ms == 250
    story.client.throttled_ms = 0
    story.enter()
    assert (story.client.throttled_ms, asked) == (0, ["User:alice"])
