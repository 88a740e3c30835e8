"""`Mechanisms`: enabled mechanisms work, on their listeners."""

import asyncio
from random import Random

import pytest
from structlog.testing import capture_logs

from kafscale.config.sections.security import MECHANISMS, Sasl
from kafscale.errors import AuthenticationError, ConfigError, UnsupportedMechanismError
from kafscale.security.principal import Principal
from kafscale.security.sasl import scram
from kafscale.security.sasl.client import create_client
from kafscale.security.sasl.mechanisms import Mechanisms
from unit.security.signing import NOW_MS, jwk, jwks, private_key, token

KEY = private_key("P-256")


def credentials(user, mechanism):
    if user != "alice":
        return None
    return scram.credential(user, mechanism, b"salt", 4096, password="secret")  # noqa: S106


@pytest.fixture
def settings(tmp_path):
    """All mechanisms, and what they go by."""
    (tmp_path / "users").write_text("alice:secret")
    (tmp_path / "keys").write_bytes(jwks(jwk(KEY)))

    def chosen(*enabled, **others):
        files = {
            "plain_users_file": str(tmp_path / "users"),
            "oauth_jwks_file": str(tmp_path / "keys"),
        }
        return Sasl(enabled_mechanisms=enabled, **files | others)

    return chosen


def start(settings):
    async def started():
        created = Mechanisms(settings, credentials, clock=lambda: NOW_MS, random=Random(0))
        await created.start()
        await created.close()
        return created

    return asyncio.run(started())


def log_in(mechanisms, mechanism, password="secret", made=""):  # noqa: S107
    server = mechanisms.create_server(mechanism)
    client = create_client(mechanism, "alice", password, made, Random(1))
    response = client.initial_response()
    while response is not None:
        step = server.evaluate_response(response)
        response = client.evaluate_challenge(step.token)
    return step.principal


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_valid_credentials_are_accepted(settings, mechanism):
    mechanisms = start(settings(mechanism))
    made = token(KEY, "ES256")
    assert log_in(mechanisms, mechanism, made=made).full_name == "User:alice"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_invalid_credentials_are_rejected(settings, mechanism):
    mechanisms = start(settings(mechanism))
    created = token(private_key("P-256", "stranger"), "ES256")
    with pytest.raises(AuthenticationError):
        log_in(mechanisms, mechanism, "guessed", created)


def test_listeners_offer_their_own_mechanisms(settings):
    mechanisms = start(settings("SCRAM-SHA-512", "PLAIN", "EXTERNAL=OAUTHBEARER"))
    assert mechanisms.offered("INTERNAL") == ("SCRAM-SHA-512", "PLAIN")
    assert mechanisms.offered("EXTERNAL") == ("OAUTHBEARER",)
    made = token(KEY, "ES256")
    expected = Principal("User:alice", (), NOW_MS + 3_600_000)
    assert log_in(mechanisms, "OAUTHBEARER", made=made) == expected


def test_disabled_mechanism_is_rejected(settings):
    mechanisms = start(settings("SCRAM-SHA-512"))
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI", ""):
        with pytest.raises(UnsupportedMechanismError, match="is not enabled"):
            mechanisms.create_server(mechanism)


def test_nonces_are_unique(settings):
    mechanisms = start(settings("SCRAM-SHA-256"))
    responses = {
        mechanisms.create_server("SCRAM-SHA-256").evaluate_response(b"n,,n=alice,r=x").token
        for _ in range(100)
    }
    assert len(responses) == 100


def test_start_fails_for_plain_without_users(settings):
    with pytest.raises(ConfigError, match="there are no users"):
        start(settings("PLAIN", plain_users_file=""))


def test_start_fails_for_oauthbearer_without_keys(settings):
    with pytest.raises(ConfigError, match="there are no keys"):
        start(settings("EXTERNAL=OAUTHBEARER", oauth_jwks_file=""))


@pytest.mark.parametrize(
    ("others", "count"),
    [({}, 1), ({"oauth_expected_issuer": "i"}, 0), ({"oauth_expected_audience": ("a",)}, 0)],
)
def test_accepting_tokens_for_other_services_is_logged(settings, others, count):
    with capture_logs() as lines:
        start(settings("OAUTHBEARER", **others))
    assert [line["event"] for line in lines] == ["tokens for other services are accepted"] * count


def test_disabled_mechanisms_need_no_settings():
    start(Sasl(enabled_mechanisms=("SCRAM-SHA-512",)))
