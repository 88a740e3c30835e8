"""A client that shows who it is to a server which goes security_for the mechanisms of a broker."""

import asyncio
import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kafscale.client.client import Client
from kafscale.client.connection import Connection
from kafscale.client.errors import UnreachableError
from kafscale.client.security import PLAINTEXT, Security
from kafscale.config.sections.security import MECHANISMS, Sasl
from kafscale.errors import AuthenticationError, ConfigError, UnsupportedMechanismError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from kafscale.security.sasl import scram
from unit.client.authenticating_broker import NOW_MS, AuthenticatingBroker

PASSWORD = "=open=sesame="  # noqa: S105
CREDENTIALS = {
    kind: scram.credential("alice", kind, b"salt", 4096, password=PASSWORD)
    for kind in ScramMechanism
}
FIRST = ["ApiVersions", "SaslHandshake", "SaslAuthenticate"]


@pytest.fixture(scope="module")
def key():
    return ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def sasl(tmp_path, key):
    """All mechanisms, with the single user alice."""
    keys = tmp_path / "keys.json"
    public = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    keys.write_text(json.dumps({"keys": [public | {"kid": "1", "alg": "ES256"}]}))
    return Sasl(
        enabled_mechanisms=MECHANISMS, plain_users=f"alice:{PASSWORD}", oauth_jwks_file=str(keys)
    )


@pytest.fixture
def alice(tmp_path, key):
    """The security settings of alice for a mechanism."""

    def security_for(mechanism, password=PASSWORD, *, token_ends_s=60):
        claims = {"sub": "alice", "exp": NOW_MS // 1000 + token_ends_s}
        file = tmp_path / "token"
        file.write_text(jwt.encode(claims, key, "ES256", {"kid": "1"}) + "\n")
        return Security(
            protocol="SASL_PLAINTEXT",
            mechanism=mechanism,
            username="alice",
            password=password,
            token_file=str(file),
        )

    return security_for


def credential(user, mechanism):
    return CREDENTIALS[mechanism] if user == "alice" else None


async def request_metadata(connection):
    return (await connection.ask(METADATA, MetadataRequest())).cluster_id


def requests_after_login(broker, security):
    """Connect and fetch metadata; return the requests that the broker received."""

    async def scenario():
        async with broker:
            connection = await Connection.open(broker.address, security)
            assert await request_metadata(connection) == "it"
            await connection.aclose()
            assert connection.is_closed

    asyncio.run(scenario())
    return broker.requests


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_authenticates(sasl, alice, mechanism):
    steps = 2 if mechanism.startswith("SCRAM") else 1
    requests = requests_after_login(
        AuthenticatingBroker(sasl, credentials=credential), alice(mechanism)
    )
    assert requests == [*FIRST[:2], *["SaslAuthenticate"] * steps, "Metadata"]


@pytest.mark.parametrize("mechanism", [each for each in MECHANISMS if each != "OAUTHBEARER"])
def test_wrong_password_is_reported_without_showing_it(sasl, alice, mechanism):
    with pytest.raises(AuthenticationError, match=r"rejected user alice: .*client\.username") as e:
        requests_after_login(
            AuthenticatingBroker(sasl, credentials=credential), alice(mechanism, "guessed")
        )
    assert "guessed" not in str(e.value)


def test_expired_token_is_reported(sasl, alice):
    with pytest.raises(AuthenticationError, match=r"rejected the token .*client\.tokenFile"):
        requests_after_login(AuthenticatingBroker(sasl), alice("OAUTHBEARER", token_ends_s=-100))


def test_unsupported_mechanism_is_reported_with_the_supported_ones(alice):
    sasl = Sasl(enabled_mechanisms=("PLAIN",), plain_users="alice:x")
    with pytest.raises(
        UnsupportedMechanismError, match=r"does not support SCRAM-SHA-256, only PLAIN;"
    ):
        requests_after_login(AuthenticatingBroker(sasl), alice("SCRAM-SHA-256"))


@pytest.mark.parametrize("code", [33, 34], ids=["ours", "Kafka's"])
def test_server_without_sasl_is_reported(alice, code):
    with pytest.raises(UnsupportedMechanismError, match=r"does not use SASL .* to PLAINTEXT"):
        requests_after_login(AuthenticatingBroker(handshake_code=code), alice("PLAIN"))


def test_required_authentication_is_reported(sasl):
    with pytest.raises(UnreachableError, match=r"if it requires authentication, .*SASL_PLAINTEXT"):
        requests_after_login(AuthenticatingBroker(sasl), PLAINTEXT)


def test_server_without_the_credential_is_rejected(sasl, alice):
    """With SCRAM, the server proves that it knows the credential."""

    class Impostor(AuthenticatingBroker):
        def _authenticate(self, sasl_server, token):
            response, is_authenticated = super()._authenticate(sasl_server, token)
            return type(response)(
                token=b"v=" + b"AAAA" if is_authenticated else response.token
            ), is_authenticated

    with pytest.raises(AuthenticationError, match="failed to authenticate itself"):
        requests_after_login(Impostor(sasl, credentials=credential), alice("SCRAM-SHA-256"))


@pytest.mark.parametrize("session_ms", [0, 3_600_000], ids=["without end", "an hour"])
def test_client_does_not_reauthenticate_within_a_session(sasl, alice, session_ms):
    broker = AuthenticatingBroker(sasl, session_ms=session_ms)
    assert requests_after_login(broker, alice("PLAIN")) == [*FIRST, "Metadata"]


def test_client_reauthenticates_before_the_session_ends(sasl, alice):
    """KIP-368: on the same connection, between two requests; other requests wait."""
    broker = AuthenticatingBroker(sasl, credentials=credential, session_ms=1)

    async def until_due():
        loop = asyncio.get_running_loop()
        due = loop.time() + broker.session_ms / 1000
        while loop.time() < due:  # noqa: ASYNC110 - a millisecond has to pass.
            await asyncio.sleep(0)

    async def scenario():
        async with broker:
            connection = await Connection.open(broker.address, alice("SCRAM-SHA-256"))
            broker.requests.clear()
            await until_due()
            broker.session_ms = 3_600_000
            assert (
                await asyncio.gather(*(request_metadata(connection) for _ in range(3)))
                == ["it"] * 3
            )
            await connection.aclose()

    asyncio.run(scenario())
    login = ["SaslHandshake", "SaslAuthenticate", "SaslAuthenticate"]
    assert broker.requests == [*login, *["Metadata"] * 3]


def test_failed_reauthentication_closes_the_connection(sasl, alice):
    broker = AuthenticatingBroker(sasl, session_ms=1)

    async def scenario():
        async with broker:
            connection = await Connection.open(broker.address, alice("OAUTHBEARER"))
            alice("OAUTHBEARER", token_ends_s=-100)  # The file has another token now.
            with pytest.raises(AuthenticationError, match="rejected the token"):
                await asyncio.gather(*(request_metadata(connection) for _ in range(1000)))
            assert not connection.is_open

    asyncio.run(scenario())


def test_client_authenticates_every_connection(sasl, alice):
    broker = AuthenticatingBroker(sasl)

    async def scenario():
        async with broker, Client([broker.address], alice("PLAIN")) as client:
            assert await request_metadata(await client.any_broker()) == "it"
            own = await client.connect(broker.address)
            assert own is not await client.any_broker()
            assert await request_metadata(own) == "it"
        assert own.is_closed

    asyncio.run(scenario())
    assert broker.requests == [*FIRST, "Metadata"] * 2


def test_unreadable_token_file_is_reported_with_its_setting(sasl, tmp_path):
    security = Security(
        protocol="SASL_PLAINTEXT", mechanism="OAUTHBEARER", token_file=str(tmp_path / "absent")
    )
    with pytest.raises(ConfigError, match=r"cannot read client\.tokenFile"):
        requests_after_login(AuthenticatingBroker(sasl), security)
