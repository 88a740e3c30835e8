"""Targets of authentication: SASL on both sides, tokens, key sets, and names of certificates.

An input of several tokens has a zero byte pair between them.
"""

import base64
import functools
import json
from collections.abc import Iterable, Iterator

import jwt

from fuzz.target import Target
from kafscale.config.sections.security import Sasl
from kafscale.errors import AuthenticationError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.security.jwt import keys as jwt_keys
from kafscale.security.jwt.verifier import TokenVerifier
from kafscale.security.principal import Principal
from kafscale.security.sasl import scram
from kafscale.security.sasl.authenticator import SaslServer
from kafscale.security.sasl.client import OAuthBearerSaslClient, ScramSaslClient
from kafscale.security.sasl.oauthbearer import OAuthBearerSaslServer
from kafscale.security.sasl.plain import PlainSaslServer
from kafscale.security.sasl.scram_authenticator import Decoys, ScramSaslServer
from kafscale.security.tls import distinguished_name
from kafscale.security.tls.principal_mapping import PrincipalMapper
from unit.security.signing import NOW_MS, jwk, jwks, private_key, token

BETWEEN = b"\0\0"
USER, PASSWORD = "alice", "pencil"
MECHANISM = ScramMechanism.SHA_256
CREDENTIAL = scram.credential(USER, MECHANISM, b"salt", 4096, password=PASSWORD)
KEY = private_key("P-256")
KEYS = jwt_keys.parse_jwks(jwks(jwk(KEY, kid="key")))
VERIFIER = TokenVerifier(
    Sasl(oauth_expected_audience=("kafka",), oauth_groups_claim="groups"),
    lambda key_id, algorithm: jwt_keys.matching_keys(KEYS, key_id, algorithm),
    lambda: NOW_MS,
)
MAPPER = PrincipalMapper("RULE:^CN=(.*?),.*$/$1/L,RULE:.*O=(.*), corp.*/$1/U,DEFAULT")


# --- servers ----------------------------------------------------------------------------------


def _log_in(server: SaslServer, tokens: Iterable[bytes]) -> Principal | None:
    principal = None
    for each in tokens:
        assert principal is None, "a token is accepted after the login"
        principal = server.evaluate_response(each).principal
    return principal


def plain(data: bytes) -> None:
    """Only the password logs a user in."""
    server = PlainSaslServer(lambda user, password: (user, password) == (USER, PASSWORD))
    if _log_in(server, [data]):
        assert data.endswith(f"\0{USER}\0{PASSWORD}".encode())


def scram_server(data: bytes) -> None:
    """Who knows the password is logged in; the proof of another exchange is none."""
    server = ScramSaslServer(
        MECHANISM,
        lambda user, _mechanism: CREDENTIAL if user == USER else None,
        Decoys(b"secret"),
        nonce="server",
    )
    assert _log_in(server, data.split(BETWEEN)[:2]) in (None, Principal(f"User:{USER}"))


def _scram_exchange() -> tuple[list[bytes], list[bytes]]:
    """The messages of a client and of a server."""
    client = ScramSaslClient(MECHANISM, USER, PASSWORD, "client")
    server = ScramSaslServer(
        MECHANISM, lambda _user, _mechanism: CREDENTIAL, Decoys(b"secret"), nonce="server"
    )
    first = client.initial_response()
    challenge = server.evaluate_response(first).token
    final = client.evaluate_challenge(challenge)
    assert final is not None
    return [first, final], [challenge, server.evaluate_response(final).token]


def oauth_server(data: bytes) -> None:
    assert _log_in(OAuthBearerSaslServer(VERIFIER.verify), [data]) in (None, ALICE)


def oauth_seeds() -> Iterator[bytes]:
    yield OAuthBearerSaslClient(_token()).initial_response()
    yield b"n,a=alice,\x01auth=Bearer " + _token().encode() + b"\x01x=y\x01\x01"


# --- clients ----------------------------------------------------------------------------------


def scram_client(data: bytes) -> None:
    client = ScramSaslClient(MECHANISM, USER, PASSWORD, "client")
    client.initial_response()
    for challenge in data.split(BETWEEN)[:2]:
        client.evaluate_challenge(challenge)


def oauth_client(data: bytes) -> None:
    client = OAuthBearerSaslClient("token")
    client.initial_response()
    client.evaluate_challenge(data)


# --- tokens and keys --------------------------------------------------------------------------

ALICE = Principal(f"User:{USER}", ("Group:analysts",), NOW_MS + 3600_000)


@functools.cache
def _token() -> str:
    headers = {"kid": "key"}
    return token(KEY, "ES256", headers=headers, aud="kafka", groups=["analysts"])


def verify_token(data: bytes) -> None:
    """No mutation has the rights of another user: a changed token is refused."""
    assert VERIFIER.verify(data.decode(errors="replace")) == ALICE


def verify_claims(data: bytes) -> None:
    """Any claims, in a token with a valid signature."""
    VERIFIER.verify(_sign(data))


def _sign(claims: bytes) -> str:
    return jwt.api_jws.encode(claims, KEY, "ES256", headers={"kid": "key"})


def claims_seeds() -> Iterator[bytes]:
    payload = _token().split(".")[1]
    yield base64.urlsafe_b64decode(payload + "==")
    yield json.dumps(
        {"sub": USER, "aud": ["kafka"], "exp": 1e300, "nbf": -1, "groups": "a"}
    ).encode()


def parse_keys(data: bytes) -> None:
    jwt_keys.parse_jwks(data)


def keys_seeds() -> Iterator[bytes]:
    kinds = ("P-256", "RSA", "Ed25519")
    yield jwks(*(jwk(private_key(kind), kid=kind) for kind in kinds))


# --- certificates -----------------------------------------------------------------------------


def name_certificate(data: bytes) -> None:
    """A name with any attributes, in valid DER, as TLS accepts it, becomes a principal."""
    attributes = [each for each in data.split(BETWEEN) if len(each) > 1]
    name = b"".join(
        _der(0x31, _der(0x30, OIDS[each[0] % len(OIDS)] + _der(each[1], each[2:66])))
        for each in attributes
    )
    MAPPER.principal(distinguished_name.format_name(name))


OIDS = (b"\x06\x03\x55\x04\x03", b"\x06\x03\x55\x04\x0a", b"\x06\x03\x2a\x86\x48")


def name_seeds() -> Iterator[bytes]:
    yield BETWEEN.join([b"\0\x0calice", b"\x01\x13 a, corp\\ ", b"\x02\x1e\x01a\x01b"])
    yield b"\x01\x0c" + b"a" * 60


def _der(tag: int, content: bytes) -> bytes:
    return bytes([tag, len(content)]) + content


REFUSED = (AuthenticationError,)
TARGETS = (
    Target("PLAIN", plain, lambda: [f"\0{USER}\0{PASSWORD}".encode(), b"a\0b\0c"], REFUSED),
    Target("SCRAM", scram_server, lambda: [BETWEEN.join(_scram_exchange()[0])], REFUSED),
    Target("OAUTHBEARER", oauth_server, oauth_seeds, REFUSED),
    Target("SCRAM client", scram_client, lambda: [BETWEEN.join(_scram_exchange()[1])], REFUSED),
    Target("OAUTHBEARER client", oauth_client, lambda: [b"", b'{"status":"no"}'], REFUSED),
    Target("tokens", verify_token, lambda: [_token().encode()], REFUSED),
    Target("claims", verify_claims, claims_seeds, REFUSED),
    Target("key sets", parse_keys, keys_seeds, (ValueError,)),
    Target("certificate names", name_certificate, name_seeds, REFUSED),
)
