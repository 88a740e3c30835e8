"""Parsing of JWKS: each public key verifies its own algorithms only."""

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
def test_key_verifies_the_algorithms_of_its_type(kind, algorithms):
    key = private_key(kind)
    (read,) = jwt_keys.parse_jwks(jwks(jwk(key, kid="a")))
    assert read.key == key.public_key()
    assert set(read.algorithms) == algorithms
    assert read.id == "a"


def test_key_may_restrict_its_algorithm():
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
def test_untrusted_keys_are_ignored(other):
    with pytest.raises(ValueError, match="no public key"):
        jwt_keys.parse_jwks(jwks(other))
    assert len(jwt_keys.parse_jwks(jwks(other, jwk(private_key("P-256"))))) == 1


def test_rsa_key_with_a_curve_stays_rsa():
    (read,) = jwt_keys.parse_jwks(jwks(jwk(private_key("RSA"), crv="P-256")))
    assert set(read.algorithms) == RSA_ALGORITHMS


def test_private_parts_are_not_read():
    private = RSAAlgorithm.to_jwk(private_key("RSA"), as_dict=True) | {"key_ops": ["verify"]}
    assert "d" in private
    (read,) = jwt_keys.parse_jwks(jwks(private))
    assert read.key == private_key("RSA").public_key()


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"keys":{}}', b"\xff", b"[" * 100_000, b'{"keys":[[[[[[']
)
def test_invalid_jwks_is_rejected(content):
    with pytest.raises(ValueError, match="is not a JWKS"):
        jwt_keys.parse_jwks(content)


def test_number_of_keys_is_limited():
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
def test_random_keys_are_parsed_or_ignored(keys):
    with pytest.raises(ValueError, match="no public key"):
        jwt_keys.parse_jwks(json.dumps({"keys": keys}).encode())


def test_keys_match_by_id_and_algorithm():
    named, other, bare = (private_key("P-256", name) for name in "abc")
    edwards = private_key("Ed25519")
    keys = jwt_keys.parse_jwks(
        jwks(jwk(named, kid="a"), jwk(other, kid="b"), jwk(bare), jwk(edwards, kid="a"))
    )

    def matching(name, algorithm):
        return jwt_keys.matching_keys(keys, name, algorithm)

    assert matching("a", "ES256") == [named.public_key(), bare.public_key()]
    assert matching("z", "ES256") == [bare.public_key()]
    assert matching(None, "ES256") == [key.public_key() for key in (named, other, bare)]
    assert matching("a", "EdDSA") == [edwards.public_key()]
    assert matching("b", "EdDSA") == []
    assert matching("a", "RS256") == []


def test_number_of_candidate_keys_is_limited():
    keys = jwt_keys.parse_jwks(jwks(*[jwk(private_key("P-256"))] * 100))
    assert len(jwt_keys.matching_keys(keys, None, "ES256")) == jwt_keys.CANDIDATE_COUNT_MAX
