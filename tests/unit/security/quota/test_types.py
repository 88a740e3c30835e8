"""Quota types: valid values and entities."""

import math

import pytest

from kafscale.errors import InvalidRequestError
from kafscale.metadata.access.model import QuotaEntity
from kafscale.security.quota.types import QUOTA_TYPES, quota_type_for

ALICE = QuotaEntity(user="alice")
LOADER = QuotaEntity(client_id="loader")
BOTH = QuotaEntity(user="alice", client_id="")
ADDRESS = QuotaEntity(ip="10.0.0.1")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("producer_byte_rate", 0, "Quota producer_byte_rate must be greater than 0"),
        ("producer_byte_rate", -1, "Quota producer_byte_rate must be greater than 0"),
        ("request_percentage", math.nan, "Quota request_percentage must be greater than 0"),
        ("consumer_byte_rate", 1.5, "consumer_byte_rate cannot be a fractional value."),
        ("consumer_byte_rate", 2.0**64, "Proposed value for consumer_byte_rate is too large for a"),
        ("connection_creation_rate", 2.0**31, "connection_creation_rate is too large for an INT."),
        ("request_rate", math.inf, "Proposed value for request_rate is too large."),
    ],
)
def test_invalid_value_is_rejected_with_a_reason(key, value, message):
    with pytest.raises(InvalidRequestError, match=message.replace(".", r"\.")):
        QUOTA_TYPES[key].check(value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("producer_byte_rate", 1048576.0),
        ("request_percentage", 12.5),
        ("controller_mutation_rate", 0.5),
        ("connection_creation_rate", 1.0),
        ("request_rate", 0.1),
    ],
)
def test_valid_value_is_accepted(key, value):
    QUOTA_TYPES[key].check(value)


@pytest.mark.parametrize(
    ("entity", "allowed"),
    [
        (ALICE, set(QUOTA_TYPES)),
        (LOADER, set(QUOTA_TYPES) - {"connection_creation_rate"}),
        (BOTH, set(QUOTA_TYPES) - {"connection_creation_rate"}),
        (ADDRESS, {"connection_creation_rate"}),
    ],
)
def test_quota_key_must_apply_to_the_entity(entity, allowed):
    for key in QUOTA_TYPES:
        if key in allowed:
            assert quota_type_for(entity, key).key == key
        else:
            with pytest.raises(InvalidRequestError, match=f"Invalid configuration key {key}"):
                quota_type_for(entity, key)


def test_unknown_quota_key_is_rejected():
    with pytest.raises(InvalidRequestError, match="Invalid configuration key happiness"):
        quota_type_for(ALICE, "happiness")
