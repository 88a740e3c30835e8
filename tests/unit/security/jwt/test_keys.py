"""Of a JWKS, public keys are taken for what they are made for, and nothing else is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from kafscale.security.jwt import keys as jwt_keys
from unit.security.signing import jwk, jwks, private_key

RSA_ALGORITHMS = {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}


@pytest.mark.parametrize(
    ("kind", "algorithms"),
    [
        ("RSA", RSA_ALGORITHMS),
        ("P-256", {"ES256"}),
        ("P-384", {"ES384"}),
        ("P-521", {"ES512"}),
        ("Ed25519", {"EdDSA"}),
        ("Ed448", {"EdDSA"}),
    ],
)
def test_a_key_is_for_what_it_is_made_for(kind, algorithms):
    key = private_key(kind)
    (read,) = jwt_keys.parse_jwks(jwks(jwk(key, kid="a")))
    assert read.key == key.public_key()
    assert set(read.algorithms) == algorithms
    assert read.id == "a"


def test_a_key_may_be_for_less():
    (read,) = jwt_keys.parse_jwks(jwks(jwk(private_key("RSA"), alg="PS384", use="sig")))
    assert read.algorithms == ("PS384",)
    assert read.id is None


NO_KEYS = {
    "shared secret": {"kty": "oct", "k": "c2VjcmV0"},
    "for encryption": jwk(private_key("RSA"), use="enc"),
    "for other operations": jwk(private_key("RSA"), key_ops=["encrypt"]),
    "too short": jwk(private_key("short RSA")),
    "another curve": jwk(private_key("secp256k1")),
    "for no signature that is accepted": jwk(private_key("RSA"), alg="RSA-OAEP"),
    "for a shared secret": jwk(private_key("RSA"), alg="HS256"),
    "for another kind": jwk(private_key("P-256"), alg="ES384"),
    "of another kind": jwk(private_key("P-256"), kty="OKP"),
    "not on the curve": jwk(private_key("P-256"), x="A" * 43),
    "not of the form": {"kty": 1},
    "no key": [],
    "without parts": {"kty": "RSA"},
    "with other parts": {"kty": "EC", "crv": "P-256", "x": "!", "y": "?"},
}


@pytest.mark.parametrize("other", NO_KEYS.values(), ids=NO_KEYS)
def test_what_is_no_public_key_to_trust_is_left_out(other):
    with pytest.raises(ValueError, match="no public key"):
        jwt_keys.parse_jwks(jwks(other))
    assert len(jwt_keys.parse_jwks(jwks(other, jwk(private_key("P-256"))))) == 1


def test_an_rsa_key_cannot_pass_for_a_curve():
    (read,) = jwt_keys.parse_jwks(jwks(jwk(private_key("RSA"), crv="P-256")))
    assert set(read.algorithms) == RSA_ALGORITHMS


def test_private_parts_are_not_looked_at():
    private = RSAAlgorithm.to_jwk(private_key("RSA"), as_dict=True) | {"key_ops": ["verify"]}
    assert "d" in private
    (read,) = jwt_keys.parse_jwks(jwks(private))
    assert read.key == private_key("RSA").public_key()


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"keys":{}}', b"\xff", b"[" * 100_000, b'{"keys":[[[[[[']
)
def test_what_is_no_jwks_is_refused(content):
    with pytest.raises(ValueError, match="is not a JWKS"):
        jwt_keys.parse_jwks(content)


def test_there_is_a_limit():
    with pytest.raises(ValueError, match="more than"):
        jwt_keys.parse_jwks(jwks(*[{}] * (jwt_keys.KEY_COUNT_MAX + 1)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["kty", "crv", "n", "e", "x", "y"]), inner)
    ),
    max_leaves=20,
)


@given(st.lists(JSON))
def test_keys_of_any_form_break_nothing(keys):
    with pytest.raises(ValueError, match="no public key"):
        jwt_keys.parse_jwks(json.dumps({"keys": keys}).encode())


def test_keys_are_found_by_name_and_kind():
    named, other, bare = (private_key("P-256", name) for name in "abc")
    edwards = private_key("Ed25519")
    keys = jwt_keys.parse_jwks(
        jwks(jwk(named, kid="a"), jwk(other, kid="b"), jwk(bare), jwk(edwards, kid="a"))
    )

    def found(name, algorithm):
        return jwt_keys.matching_keys(keys, name, algorithm)

    assert found("a", "ES256") == [named.public_key(), bare.public_key()]
    assert found("z", "ES256") == [bare.public_key()]
    assert found(None, "ES256") == [key.public_key() for key in (named, other, bare)]
    assert found("a", "EdDSA") == [edwards.public_key()]
    assert found("b", "EdDSA") == []
    assert found("a", "RS256") == []


def test_few_keys_are_tried_on_one_token():
    keys = jwt_keys.parse_jwks(jwks(*[jwk(private_key("P-256"))] * 100))
    assert len(jwt_keys.matching_keys(keys, None, "ES256")) == jwt_keys.CANDIDATE_COUNT_MAX
