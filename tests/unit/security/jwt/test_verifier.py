"""A token convinces by its signature first, and then by everything that it says."""

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
def test_a_token_says_who_it_is_for(algorithm, has_key_id):
    headers = {"kid": KINDS[algorithm]} if has_key_id else None
    made = token(private_key(KINDS[algorithm]), algorithm, headers=headers)
    assert verifier().verify(made) == Principal("User:alice", (), (NOW_S + 3600) * 1000)


def test_ed448_signs_as_well():
    key = private_key("Ed448")
    keys = jwt_keys.parse_jwks(jwks(jwk(key)))
    assert verifier(keys=keys).verify(token(key, "EdDSA")).user == "alice"


# --- signatures ---------------------------------------------------------------------------------


def test_a_signature_by_another_key_is_wrong():
    with pytest.raises(TokenError, match="the token's signature is invalid"):
        verifier().verify(token(private_key("P-256", "other"), "ES256"))


def test_a_key_that_is_not_known_is_told():
    with pytest.raises(TokenError, match="an unknown key"):
        verifier().verify(token(KEY, "ES256", headers={"kid": "new"}))


def test_a_token_that_was_changed_is_refused():
    header, payload, signature = token(KEY, "ES256").split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    forged = encoded(claims | {"sub": "root"})
    with pytest.raises(TokenError, match="the token's signature is invalid"):
        verifier().verify(f"{header}.{forged}.{signature}")


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", "HS256", "ES256K", None, 1, []])
def test_only_public_keys_sign(algorithm):
    header = encoded({"alg": algorithm, "typ": "JWT"})
    payload = encoded({"sub": "root", "exp": NOW_S + 3600})
    for signature in ("", encoded(b"signed")):
        with pytest.raises(TokenError, match="algorithm is not accepted"):
            verifier().verify(f"{header}.{payload}.{signature}")


@pytest.mark.parametrize("kind", ["RSA", "P-256"])
def test_a_public_key_is_no_shared_secret(kind):
    """The attack on those who believe the header: HMAC with the key that everybody can read."""
    public = private_key(kind).public_key()
    for form in (
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    ):
        signed = f"{encoded({'alg': 'HS256', 'kid': kind})}.{encoded({'sub': 'root'})}"
        forged = encoded(hmac.digest(form, signed.encode(), hashlib.sha256))
        with pytest.raises(TokenError, match="algorithm is not accepted"):
            verifier().verify(f"{signed}.{forged}")


def test_a_key_does_not_sign_by_the_rules_of_another_kind():
    made = token(private_key("RSA"), "RS256", headers={"kid": "P-256"})
    with pytest.raises(TokenError, match="an unknown key"):
        verifier().verify(made)


def test_a_key_in_the_token_itself_counts_for_nothing():
    stranger = private_key("P-256", "stranger")
    headers = {
        "jwk": jwk(stranger),
        "jku": "https://example.com/keys",
        "x5u": "https://example.com",
    }
    with pytest.raises(TokenError, match="the token's signature is invalid"):
        verifier().verify(token(stranger, "ES256", headers=headers))


def test_an_extension_that_has_to_be_understood_is_not():
    with pytest.raises(TokenError, match="is not a signed JWT"):
        verifier().verify(token(KEY, "ES256", headers={"crit": ["future"], "future": 1}))


# --- claims -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [-30, -31])
def test_a_token_ends(seconds):
    with pytest.raises(TokenError, match="has expired"):
        identity(exp=NOW_S + seconds)


def test_clocks_may_differ_a_little():
    assert identity(exp=NOW_S - 29).expires_ms == NOW_MS - 29_000
    assert identity(nbf=NOW_S + 30, iat=NOW_S + 30)
    with pytest.raises(TokenError, match="has expired"):
        identity(exp=NOW_S, settings={"oauth_clock_skew_sec": 0})


def test_a_token_without_an_end_is_refused():
    with pytest.raises(TokenError, match="has no expiry"):
        identity(exp=None)


@pytest.mark.parametrize("claim", ["nbf", "iat"])
def test_a_token_begins(claim):
    with pytest.raises(TokenError, match=rf"not valid yet \({claim}\)"):
        identity(**{claim: NOW_S + 31})


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
@pytest.mark.parametrize("value", [True, "1750003600", [], -1, 1e30, 1 << 80])
def test_a_time_is_a_number(claim, value):
    made = jwt.PyJWS().encode(
        json.dumps({"sub": "alice", "exp": NOW_S + 3600} | {claim: value}).encode(), KEY, "ES256"
    )
    with pytest.raises(TokenError, match=f"the claim {claim} of the token is not a time"):
        verifier().verify(made)


def test_a_time_may_have_a_fraction():
    assert identity(exp=NOW_S + 0.5).expires_ms == NOW_MS + 500


@pytest.mark.parametrize("issuer", [None, "https://other", "https://issuer/"])
def test_a_token_is_from_the_right_issuer(issuer):
    settings = {"oauth_expected_issuer": "https://issuer"}
    assert identity(settings=settings, iss="https://issuer")
    with pytest.raises(TokenError, match="another issuer"):
        identity(settings=settings, iss=issuer)


@pytest.mark.parametrize("audience", [None, "other", ["other"], []])
def test_a_token_is_for_the_right_audience(audience):
    settings = {"oauth_expected_audience": ("kafka", "kafscale")}
    assert identity(settings=settings, aud="kafscale")
    assert identity(settings=settings, aud=["other", "kafka"])
    assert identity(aud=audience)
    with pytest.raises(TokenError, match="another audience"):
        identity(settings=settings, aud=audience)


@pytest.mark.parametrize("scope", [None, "", "read", ["read"], "readwrite", "read writes"])
def test_a_token_allows_all_that_is_asked_for(scope):
    settings = {"oauth_required_scopes": ("read", "write")}
    assert identity(settings=settings, scope="write more read")
    assert identity(settings=settings, scope=["write", "read"])
    assert identity(settings=settings | {"oauth_scope_claim": "scp"}, scp=["write", "read"])
    with pytest.raises(TokenError, match="required scopes") as refusal:
        identity(settings=settings, scope=scope)
    assert refusal.value.status == "insufficient_scope"


def test_the_name_may_be_in_another_claim():
    settings = {"oauth_principal_claim": "client_id"}
    assert identity(settings=settings, client_id="shop").full_name == "User:shop"


@pytest.mark.parametrize("name", [None, "", " "])
def test_a_token_names_somebody(name):
    with pytest.raises(TokenError, match="no claim sub"):
        identity(sub=name)


@pytest.mark.parametrize("name", [1, ["alice"], {"name": "alice"}, True])
def test_a_name_is_text(name):
    made = jwt.PyJWS().encode(json.dumps({"sub": name, "exp": NOW_S + 3600}).encode(), KEY, "ES256")
    with pytest.raises(TokenError, match="the claim sub of the token is not text"):
        verifier().verify(made)


def test_groups_come_with_the_token():
    assert identity(groups=["analysts", "User:root"]).groups == (
        "Group:analysts",
        "Group:User:root",
    )
    assert identity(groups="analysts").groups == ("Group:analysts",)
    assert identity(settings={"oauth_groups_claim": "roles"}, roles=["a"]).groups == ("Group:a",)


@pytest.mark.parametrize("groups", [1, {"a": 1}, ["a", 1], [["a"]]])
def test_groups_that_cannot_be_read_are_not_left_out(groups):
    """A rule may deny something to one of them."""
    with pytest.raises(TokenError, match="the claim groups of the token is not a list of text"):
        identity(groups=groups)


# --- whatever else ------------------------------------------------------------------------------


@pytest.mark.parametrize("payload", [b"", b"[]", b"1", b"\xff", b"{", b"[" * 50_000])
def test_what_is_signed_are_claims(payload):
    with pytest.raises(TokenError, match="has no claims"):
        verifier().verify(jwt.PyJWS().encode(payload, KEY, "ES256"))


@pytest.mark.parametrize(
    "made",
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
def test_what_is_no_token_is_refused(made):
    with pytest.raises(TokenError, match="is not a signed JWT"):
        verifier().verify(made)


@given(st.from_regex(r"[-_.a-zA-Z0-9]{0,60}", fullmatch=True))
def test_garbage_is_refused(made):
    with pytest.raises(TokenError):
        verifier().verify(made)


@given(st.binary(max_size=80))
def test_a_signature_is_not_guessed(signature):
    signed = token(KEY, "ES256").rpartition(".")[0]
    with pytest.raises(TokenError):
        verifier().verify(f"{signed}.{encoded(signature)}")


NAMES = st.sampled_from(["alg", "kid", "crit", "b64", "typ", "zip", "x5c"])
VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())


@given(st.dictionaries(NAMES, VALUES))
def test_a_header_of_any_form_is_refused(header):
    with pytest.raises(TokenError):
        verifier().verify(f"{encoded(header)}.{encoded({'sub': 'root'})}.{encoded(b'x')}")
