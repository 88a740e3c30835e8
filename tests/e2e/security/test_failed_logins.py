"""Failed logins are reported to the client and logged, without secrets."""

import pytest

from services.certificates import make_certificates
from services.identity_provider import IdentityProvider
from services.secured_broker import SecuredBroker
from services.secured_clients import AIOKAFKA, LIBRDKAFKA
from services.waiting import wait_until
from services.way_in import WayIn

pytestmark = pytest.mark.timeout(60)

WRONG = "secret-of-mallory"
INVALID = "invalid credentials with SASL mechanism SCRAM-SHA-512"


@pytest.fixture(scope="module")
def untrusted(tmp_path_factory):
    """Certificates of an untrusted CA."""
    return make_certificates(tmp_path_factory.mktemp("untrusted"), "alice", name="another CA")


def check_login_fails(broker: SecuredBroker, way: WayIn, logged: str, *messages: str) -> None:
    """Check that clients report one of the messages, and that the broker logs the failure."""
    since_bytes = broker.log.stat().st_size
    for said in (LIBRDKAFKA.complaint(way, messages), AIOKAFKA.complaint(way)):
        assert any(message in said for message in messages), said

    def is_logged() -> bool:
        # A log line may be suppressed by the rate limit; try again.
        return logged in broker.logged(since_bytes) or not AIOKAFKA.complaint(way)

    wait_until(is_logged, logged, seconds_max=10)


def test_wrong_password_fails(secured):
    way = secured.plain("alice").but(password=WRONG)
    check_login_fails(secured, way, "login failed", "Invalid username or password")
    assert "secret-of-alice" not in secured.logged()


def test_scram_does_not_reveal_existing_users(secured):
    for way in (secured.scram("alice").but(password=WRONG), secured.scram("mallory")):
        check_login_fails(secured, way, '"mechanism": "SCRAM-SHA-512"', INVALID)


def test_expired_or_forged_token_fails(secured, tmp_path):
    check_login_fails(
        secured,
        secured.token("alice", lasts_s=-5),
        "the token has expired",
        "the token has expired",
        "Unable to bootstrap",
    )
    forger = IdentityProvider(tmp_path)
    way = secured.token("alice").but(token=lambda: forger.token("alice"))
    check_login_fails(
        secured,
        way,
        "the token's signature is invalid",
        "the token's signature is invalid",
        "Unable to bootstrap",
    )


def test_disabled_mechanism_fails(secured):
    messages = ("Unsupported SASL mechanism", "UnsupportedSaslMechanismError")
    check_login_fails(secured, secured.inside("alice").but(mechanism="PLAIN"), "", *messages)


def test_missing_or_untrusted_client_certificate_fails(secured, untrusted):
    way = secured.certificate("alice")
    check_login_fails(
        secured,
        way.but(credential=None),
        "PEER_DID_NOT_RETURN_A_CERTIFICATE",
        "alert certificate required",
        "Unable to bootstrap",
    )
    check_login_fails(
        secured,
        way.but(credential=untrusted.users["alice"]),
        "CERTIFICATE_VERIFY_FAILED",
        "alert unknown ca",
        "Unable to bootstrap",
    )


def test_untrusted_server_certificate_fails(secured, untrusted):
    way = secured.plain("alice").but(authority=untrusted.authority)
    check_login_fails(
        secured, way, "connection failed before its first request", "certificate verify failed"
    )


@pytest.mark.parametrize(
    ("listener", "reason"),
    [("MUTUAL", "WRONG_VERSION_NUMBER"), ("INSIDE", "request before authentication")],
)
def test_plaintext_client_without_login_fails(secured, listener, reason):
    way = secured.anonymous().but(port=secured.ports[listener])
    check_login_fails(secured, way, reason, "ALL_BROKERS_DOWN", "Unable to bootstrap")
