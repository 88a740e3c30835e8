"""Keys and encoding of ACLs, credentials and quotas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import DamagedObjectError
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.access import keys
from kafscale.metadata.access.codec import (
    decode_acl,
    decode_credential,
    decode_quota,
    encode_acl,
    encode_credential,
    encode_quota,
)
from kafscale.metadata.access.model import (
    Acl,
    Operation,
    PatternType,
    Permission,
    QuotaEntity,
    ResourceType,
    ScramCredential,
    ScramMechanism,
)
from kafscale.metadata.store.base import Entry

NAMES = st.one_of(
    st.sampled_from(["*", "a/b", "a%2Fb", "<default>", "%", "é", "\U0001f600"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
)
ACLS = st.builds(
    Acl,
    st.sampled_from(ResourceType),
    st.sampled_from(PatternType),
    NAMES,
    NAMES,
    NAMES,
    st.sampled_from(Operation),
    st.sampled_from(Permission),
)
CREDENTIALS = st.builds(
    ScramCredential,
    NAMES,
    st.sampled_from(ScramMechanism),
    st.binary(max_size=8),
    st.integers(1, 16_384),
    st.binary(max_size=8),
    st.binary(max_size=8),
)
PARTS = st.one_of(st.none(), st.just(""), NAMES)
ENTITIES = st.builds(QuotaEntity, PARTS, PARTS, PARTS).filter(lambda each: each != QuotaEntity())
LIMITS = st.dictionaries(NAMES, st.floats(allow_nan=False), max_size=3)

RULE = Acl(
    ResourceType.TOPIC,
    PatternType.LITERAL,
    "orders/eu",
    "User:alice",
    "*",
    Operation.READ,
    Permission.ALLOW,
)


def entry(key, value):
    return Entry(key, value, 1, 1)


@given(acl=ACLS)
def test_acl_round_trips(acl):
    assert decode_acl(entry(keys.acl(acl), encode_acl(acl))) == acl


@given(credential=CREDENTIALS)
def test_credential_round_trips(credential):
    key = keys.credential(credential.user, credential.mechanism)
    assert decode_credential(entry(key, encode_credential(credential))) == credential


@given(entity=ENTITIES, limits=LIMITS)
def test_quota_round_trips(entity, limits):
    key = keys.quota(entity)
    assert decode_quota(entry(key, encode_quota(entity, limits))) == (entity, limits)


@given(one=ACLS, other=ACLS)
def test_acl_keys_are_unique(one, other):
    assert (keys.acl(one) == keys.acl(other)) == (one == other)


@given(one=ENTITIES, other=ENTITIES)
def test_quota_keys_are_unique(one, other):
    assert (keys.quota(one) == keys.quota(other)) == (one == other)


def test_keys_are_readable():
    assert keys.acl(RULE) == (
        "/kafscale/access/acls/TOPIC/LITERAL/orders%2Feu/User:alice/*/READ/ALLOW"
    )
    assert keys.credential("al/ice", ScramMechanism.SHA_512) == (
        "/kafscale/access/users/al%2Fice/SCRAM-SHA-512"
    )
    assert keys.quota(QuotaEntity(user="alice", client_id="")) == (
        "/kafscale/access/quotas/users/alice/clients/<default>"
    )
    assert keys.quota(QuotaEntity(ip="10.0.0.1")) == ("/kafscale/access/quotas/ips/10.0.0.1")


@pytest.mark.parametrize("decode", [decode_acl, decode_credential, decode_quota])
@pytest.mark.parametrize("value", [b"\xff", b"", messages.Quota().SerializeToString()])
def test_invalid_message_is_damaged(decode, value):
    with pytest.raises(DamagedObjectError):
        decode(entry("/kafscale/access/x", value))


def test_unknown_enum_number_is_damaged():
    record = messages.AccessRule.FromString(encode_acl(RULE))
    record.operation = 99
    with pytest.raises(DamagedObjectError, match="99"):
        decode_acl(entry(keys.acl(RULE), record.SerializeToString()))
    credential = messages.ScramCredential(user="alice", mechanism=3)
    with pytest.raises(DamagedObjectError, match="3"):
        decode_credential(entry("/kafscale/access/users/alice/x", credential.SerializeToString()))


def test_value_under_another_key_is_damaged():
    with pytest.raises(DamagedObjectError, match="orders%2Feu"):
        decode_acl(entry(keys.acl(RULE) + "/", encode_acl(RULE)))
