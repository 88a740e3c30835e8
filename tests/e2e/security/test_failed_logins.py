"""Failed logins are reported to the client and logged, without secrets."""

import pytest

from services.certificates import make_certificates
from services.client_config import ClientConfig
from services.identity_provider import IdentityProvider
from services.secured_broker import SecuredBroker
from services.secured_clients import AIOKAFKA, LIBRDKAFKA
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(60)

WRONG = "secret-of-mallory"
INVALID = "invalid credentials with SASL mechanism SCRAM-SHA-512"


@pytest.fixture(scope="module")
def untrusted(tmp_path_factory):
    """Certificates of an untrusted CA."""
    return make_certificates(tmp_path_factory.mktemp("untrusted"), "alice", name="another CA")


def check_login_fails(
    broker: SecuredBroker, config: ClientConfig, logged: str, *messages: str
) -> None:
    """Check that clients report one of the messages, and that the broker logs the failure."""
    since_bytes = broker.log.stat().st_size
    for output in (LIBRDKAFKA.login_error(config, messages), AIOKAFKA.login_error(config)):
        assert any(message in output for message in messages), output

    def is_logged() -> bool:
        # A log line may be suppressed by the rate limit; try again.
        return logged in broker.logged(since_bytes) or not AIOKAFKA.login_error(config)

    wait_until(is_logged, logged, seconds_max=10)


def test_wrong_password_fails(secured):
    config = secured.plain("alice").with_changes(password=WRONG)
    check_login_fails(secured, config, "login failed", "Invalid username or password")
    assert "secret-of-alice" not in secured.logged()


def test_scram_does_not_reveal_existing_users(secured):
    for config in (secured.scram("alice").with_changes(password=WRONG), secured.scram("mallory")):
        check_login_fails(secured, config, '"mechanism": "SCRAM-SHA-512"', INVALID)


def test_expired_or_forged_token_fails(secured, tmp_path):
    check_login_fails(
        secured,
        secured.token("alice", lasts_s=-5),
        "the token has expired",
        "the token has expired",
        "Unable to bootstrap",
    )
    forger = IdentityProvider(tmp_path)
    config = secured.token("alice").with_changes(token=lambda: forger.token("alice"))
    check_login_fails(
        secured,
        config,
        "the token's signature is invalid",
        "the token's signature is invalid",
        "Unable to bootstrap",
    )


def test_disabled_mechanism_fails(secured):
    messages = ("Unsupported SASL mechanism", "UnsupportedSaslMechanismError")
    check_login_fails(
        secured, secured.inside("alice").with_changes(mechanism="PLAIN"), "", *messages
    )


def test_missing_or_untrusted_client_certificate_fails(secured, untrusted):
    config = secured.certificate("alice")
    check_login_fails(
        secured,
        config.with_changes(credential=None),
        "PEER_DID_NOT_RETURN_A_CERTIFICATE",
        "alert certificate required",
        "Unable to bootstrap",
    )
    check_login_fails(
        secured,
        config.with_changes(credential=untrusted.users["alice"]),
        "CERTIFICATE_VERIFY_FAILED",
        "alert unknown ca",
        "Unable to bootstrap",
    )


def test_untrusted_server_certificate_fails(secured, untrusted):
    config = secured.plain("alice").with_changes(authority=untrusted.authority)
    check_login_fails(
        secured, config, "connection failed before its first request", "certificate verify failed"
    )


@pytest.mark.parametrize(
    ("listener", "reason"),
    [("MUTUAL", "WRONG_VERSION_NUMBER"), ("INSIDE", "request before authentication")],
)
def test_plaintext_client_without_login_fails(secured, listener, reason):
    config = secured.anonymous().with_changes(port=secured.ports[listener])
    check_login_fails(secured, config, reason, "ALL_BROKERS_DOWN", "Unable to bootstrap")
