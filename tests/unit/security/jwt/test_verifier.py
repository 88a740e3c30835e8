"""`TokenVerifier`: signature first, then claims."""

import base64
import hashlib
import hmac
import json

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from kafscale.config.sections.security import Sasl
from kafscale.security.jwt import keys as jwt_keys
from kafscale.security.jwt.verifier import TokenError, TokenVerifier
from kafscale.security.principal import Principal
from unit.security.signing import NOW_MS, NOW_S, jwk, jwks, private_key, token

KINDS = {
    "RS256": "RSA",
    "RS384": "RSA",
    "RS512": "RSA",
    "PS256": "RSA",
    "PS384": "RSA",
    "PS512": "RSA",
    "ES256": "P-256",
    "ES384": "P-384",
    "ES512": "P-521",
    "EdDSA": "Ed25519",
}
KEYS = jwt_keys.parse_jwks(
    jwks(*(jwk(private_key(kind), kid=kind) for kind in set(KINDS.values())))
)
KEY = private_key("P-256")


def verifier(now_ms=NOW_MS, keys=KEYS, **settings):
    return TokenVerifier(
        Sasl(**settings),
        lambda key_id, algorithm: jwt_keys.matching_keys(keys, key_id, algorithm),
        lambda: now_ms,
    )


def identity(now_ms=NOW_MS, settings=None, **claims):
    return verifier(now_ms, **settings or {}).verify(token(KEY, "ES256", **claims))


def encoded(part):
    content = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@pytest.mark.parametrize("algorithm", KINDS)
@pytest.mark.parametrize("has_key_id", [True, False])
def test_valid_token_has_a_principal(algorithm, has_key_id):
    headers = {"kid": KINDS[algorithm]} if has_key_id else None
    created = token(private_key(KINDS[algorithm]), algorithm, headers=headers)
    assert verifier().verify(created) == Principal("User:alice", (), (NOW_S + 3600) * 1000)


def test_ed448_signature_is_accepted():
    key = private_key("Ed448")
    keys = jwt_keys.parse_jwks(jwks(jwk(key)))
    assert verifier(keys=keys).verify(token(key, "EdDSA")).user == "alice"


# --- signatures ---------------------------------------------------------------------------------


def test_signature_of_another_key_is_rejected():
    with pytest.raises(TokenError, match="the token's signature is invalid"):
        verifier().verify(token(private_key("P-256", "other"), "ES256"))


def test_unknown_key_is_reported():
    with pytest.raises(TokenError, match="an unknown key"):
        verifier().verify(token(KEY, "ES256", headers={"kid": "new"}))


def test_modified_token_is_rejected():
    header, payload, signature = token(KEY, "ES256").split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    forged = encoded(claims | {"sub": "root"})
    with pytest.raises(TokenError, match="the token's signature is invalid"):
        verifier().verify(f"{header}.{forged}.{signature}")


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", "HS256", "ES256K", None, 1, []])
def test_symmetric_algorithms_are_rejected(algorithm):
    header = encoded({"alg": algorithm, "typ": "JWT"})
    payload = encoded({"sub": "root", "exp": NOW_S + 3600})
    for signature in ("", encoded(b"signed")):
        with pytest.raises(TokenError, match="algorithm is not accepted"):
            verifier().verify(f"{header}.{payload}.{signature}")


@pytest.mark.parametrize("kind", ["RSA", "P-256"])
def test_public_key_is_not_accepted_as_hmac_secret(kind):
    """The algorithm confusion attack: HMAC with the public key as its secret."""
    public = private_key(kind).public_key()
    for form in (
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    ):
        signed = f"{encoded({'alg': 'HS256', 'kid': kind})}.{encoded({'sub': 'root'})}"
        forged = encoded(hmac.digest(form, signed.encode(), hashlib.sha256))
        with pytest.raises(TokenError, match="algorithm is not accepted"):
            verifier().verify(f"{signed}.{forged}")


def test_algorithm_of_another_key_type_is_rejected():
    created = token(private_key("RSA"), "RS256", headers={"kid": "P-256"})
    with pytest.raises(TokenError, match="an unknown key"):
        verifier().verify(created)


def test_embedded_key_is_ignored():
    stranger = private_key("P-256", "stranger")
    headers = {
        "jwk": jwk(stranger),
        "jku": "https://example.com/keys",
        "x5u": "https://example.com",
    }
    with pytest.raises(TokenError, match="the token's signature is invalid"):
        verifier().verify(token(stranger, "ES256", headers=headers))


def test_critical_extension_is_rejected():
    with pytest.raises(TokenError, match="is not a signed JWT"):
        verifier().verify(token(KEY, "ES256", headers={"crit": ["future"], "future": 1}))


# --- claims -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [-30, -31])
def test_expired_token_is_rejected(seconds):
    with pytest.raises(TokenError, match="has expired"):
        identity(exp=NOW_S + seconds)


def test_clock_skew_is_tolerated():
    assert identity(exp=NOW_S - 29).expires_ms == NOW_MS - 29_000
    assert identity(nbf=NOW_S + 30, iat=NOW_S + 30)
    with pytest.raises(TokenError, match="has expired"):
        identity(exp=NOW_S, settings={"oauth_clock_skew_sec": 0})


def test_token_without_expiry_is_rejected():
    with pytest.raises(TokenError, match="has no expiry"):
        identity(exp=None)


@pytest.mark.parametrize("claim", ["nbf", "iat"])
def test_token_that_is_not_valid_yet_is_rejected(claim):
    with pytest.raises(TokenError, match=rf"not valid yet \({claim}\)"):
        identity(**{claim: NOW_S + 31})


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
@pytest.mark.parametrize("value", [True, "1750003600", [], -1, 1e30, 1 << 80])
def test_time_claims_must_be_numbers(claim, value):
    created = jwt.PyJWS().encode(
        json.dumps({"sub": "alice", "exp": NOW_S + 3600} | {claim: value}).encode(), KEY, "ES256"
    )
    with pytest.raises(TokenError, match=f"the claim {claim} of the token is not a time"):
        verifier().verify(created)


def test_time_claims_may_have_fractions():
    assert identity(exp=NOW_S + 0.5).expires_ms == NOW_MS + 500


@pytest.mark.parametrize("issuer", [None, "https://other", "https://issuer/"])
def test_issuer_must_match(issuer):
    settings = {"oauth_expected_issuer": "https://issuer"}
    assert identity(settings=settings, iss="https://issuer")
    with pytest.raises(TokenError, match="another issuer"):
        identity(settings=settings, iss=issuer)


@pytest.mark.parametrize("audience", [None, "other", ["other"], []])
def test_audience_must_match(audience):
    settings = {"oauth_expected_audience": ("kafka", "kafscale")}
    assert identity(settings=settings, aud="kafscale")
    assert identity(settings=settings, aud=["other", "kafka"])
    assert identity(aud=audience)
    with pytest.raises(TokenError, match="another audience"):
        identity(settings=settings, aud=audience)


@pytest.mark.parametrize("scope", [None, "", "read", ["read"], "readwrite", "read writes"])
def test_required_scopes_must_be_present(scope):
    settings = {"oauth_required_scopes": ("read", "write")}
    assert identity(settings=settings, scope="write more read")
    assert identity(settings=settings, scope=["write", "read"])
    assert identity(settings=settings | {"oauth_scope_claim": "scp"}, scp=["write", "read"])
    with pytest.raises(TokenError, match="required scopes") as refusal:
        identity(settings=settings, scope=scope)
    assert refusal.value.status == "insufficient_scope"


def test_principal_claim_is_configurable():
    settings = {"oauth_principal_claim": "client_id"}
    assert identity(settings=settings, client_id="shop").full_name == "User:shop"


@pytest.mark.parametrize("name", [None, "", " "])
def test_principal_claim_must_not_be_empty(name):
    with pytest.raises(TokenError, match="no claim sub"):
        identity(sub=name)


@pytest.mark.parametrize("name", [1, ["alice"], {"name": "alice"}, True])
def test_principal_claim_must_be_text(name):
    created = jwt.PyJWS().encode(
        json.dumps({"sub": name, "exp": NOW_S + 3600}).encode(), KEY, "ES256"
    )
    with pytest.raises(TokenError, match="the claim sub of the token is not text"):
        verifier().verify(created)


def test_groups_claim_is_used():
    assert identity(groups=["analysts", "User:root"]).groups == (
        "Group:analysts",
        "Group:User:root",
    )
    assert identity(groups="analysts").groups == ("Group:analysts",)
    assert identity(settings={"oauth_groups_claim": "roles"}, roles=["a"]).groups == ("Group:a",)


@pytest.mark.parametrize("groups", [1, {"a": 1}, ["a", 1], [["a"]]])
def test_invalid_groups_are_rejected(groups):
    """A rule may deny something to one of them."""
    with pytest.raises(TokenError, match="the claim groups of the token is not a list of text"):
        identity(groups=groups)


# --- whatever else ------------------------------------------------------------------------------


@pytest.mark.parametrize("payload", [b"", b"[]", b"1", b"\xff", b"{", b"[" * 50_000])
def test_payload_must_be_claims(payload):
    with pytest.raises(TokenError, match="has no claims"):
        verifier().verify(jwt.PyJWS().encode(payload, KEY, "ES256"))


@pytest.mark.parametrize(
    "created",
    [
        "",
        ".",
        "..",
        "a.b.c",
        f"{encoded(b'[' * 60_000)}.e30.e30",
        f"{encoded([])}.e30.e30",
        f"{encoded({'alg': 'ES256', 'kid': 1})}.e30.e30",
        f"{encoded({'alg': 'ES256'})}.e30.=",
    ],
)
def test_malformed_token_is_rejected(created):
    with pytest.raises(TokenError, match="is not a signed JWT"):
        verifier().verify(created)


@given(st.from_regex(r"[-_.a-zA-Z0-9]{0,60}", fullmatch=True))
def test_random_text_is_rejected(made):
    with pytest.raises(TokenError):
        verifier().verify(made)


@given(st.binary(max_size=80))
def test_random_signature_is_rejected(signature):
    signed = token(KEY, "ES256").rpartition(".")[0]
    with pytest.raises(TokenError):
        verifier().verify(f"{signed}.{encoded(signature)}")


NAMES = st.sampled_from(["alg", "kid", "crit", "b64", "typ", "zip", "x5c"])
VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())


@given(st.dictionaries(NAMES, VALUES))
def test_random_header_is_rejected(header):
    with pytest.raises(TokenError):
        verifier().verify(f"{encoded(header)}.{encoded({'sub': 'root'})}.{encoded(b'x')}")
