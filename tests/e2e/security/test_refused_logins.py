"""Who may not come in is told why, at once; the log has it, and holds no secret."""

import pytest

from services.certificates import make_certificates
from services.identity_provider import IdentityProvider
from services.secured_broker import SecuredBroker
from services.secured_clients import AIOKAFKA, LIBRDKAFKA
from services.waiting import wait_until
from services.way_in import WayIn

pytestmark = pytest.mark.timeout(60)

WRONG = "secret-of-nobody"
INVALID = "invalid credentials with SASL mechanism SCRAM-SHA-512"


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """Certificates of an authority that the broker does not know."""
    return make_certificates(tmp_path_factory.mktemp("strangers"), "alice", name="another CA")


def refused(broker: SecuredBroker, way: WayIn, logged: str, *told: str) -> None:
    """Have clients try: they are told one of these, and the log tells of it too."""
    since_bytes = broker.log.stat().st_size
    for said in (LIBRDKAFKA.complaint(way, told), AIOKAFKA.complaint(way)):
        assert any(words in said for words in told), said

    def is_logged() -> bool:
        # Among many like it, a line may be left out.
        return logged in broker.logged(since_bytes) or not AIOKAFKA.complaint(way)

    wait_until(is_logged, logged, seconds_max=10)


def test_a_password_is_wrong(secured):
    way = secured.plain("alice").but(password=WRONG)
    refused(secured, way, "login failed", "Invalid username or password")
    assert "secret-of-alice" not in secured.logged()


def test_scram_tells_nobody_which_users_there_are(secured):
    for way in (secured.scram("alice").but(password=WRONG), secured.scram("nobody")):
        refused(secured, way, '"mechanism": "SCRAM-SHA-512"', INVALID)


def test_a_token_is_over_or_signed_by_somebody_else(secured, tmp_path):
    refused(
        secured,
        secured.token("alice", lasts_s=-5),
        "the token has expired",
        "the token has expired",
        "Unable to bootstrap",
    )
    forger = IdentityProvider(tmp_path)
    way = secured.token("alice").but(token=lambda: forger.token("alice"))
    refused(
        secured,
        way,
        "the token's signature is invalid",
        "the token's signature is invalid",
        "Unable to bootstrap",
    )


def test_a_mechanism_is_not_offered(secured):
    told = ("Unsupported SASL mechanism", "UnsupportedSaslMechanismError")
    refused(secured, secured.inside("alice").but(mechanism="PLAIN"), "", *told)


def test_a_certificate_is_missing_or_from_a_stranger(secured, strangers):
    way = secured.certificate("alice")
    refused(
        secured,
        way.but(credential=None),
        "PEER_DID_NOT_RETURN_A_CERTIFICATE",
        "alert certificate required",
        "Unable to bootstrap",
    )
    refused(
        secured,
        way.but(credential=strangers.users["alice"]),
        "CERTIFICATE_VERIFY_FAILED",
        "alert unknown ca",
        "Unable to bootstrap",
    )


def test_a_client_does_not_trust_the_broker(secured, strangers):
    way = secured.plain("alice").but(authority=strangers.authority)
    refused(secured, way, "connection failed before its first request", "certificate verify failed")


@pytest.mark.parametrize(
    ("listener", "reason"),
    [("MUTUAL", "WRONG_VERSION_NUMBER"), ("INSIDE", "request before authentication")],
)
def test_a_client_speaks_in_the_clear_and_does_not_log_in(secured, listener, reason):
    way = secured.anonymous().but(port=secured.ports[listener])
    refused(secured, way, reason, "ALL_BROKERS_DOWN", "Unable to bootstrap")
