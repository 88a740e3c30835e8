"""Quota entities and filters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import InvalidRequestError, UnknownApiError
from kafscale.metadata.access.model import QuotaEntity
from kafscale.security.quota.entities import (
    ANY_NAME,
    EXACT,
    IS_DEFAULT,
    Filter,
    entity_of,
    parts_of,
    select,
)

names = st.none() | st.text(min_size=1)

ALICE = QuotaEntity(user="alice")
ANY_USER = QuotaEntity(user="")
LOADER = QuotaEntity(client_id="loader")
ALICES_LOADER = QuotaEntity(user="alice", client_id="loader")
ANY_ADDRESS = QuotaEntity(ip="")
ALL = [ALICE, ANY_USER, LOADER, ALICES_LOADER, ANY_ADDRESS]


@given(
    st.fixed_dictionaries({"user": names}, optional={"client-id": names})
    | st.fixed_dictionaries({"client-id": names})
    | st.fixed_dictionaries({"ip": st.none() | st.ip_addresses(v=4).map(str)})
)
def test_entity_round_trips_its_parts(parts):
    assert dict(parts_of(entity_of(list(parts.items())))) == parts


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "Invalid empty client quota entity"),
        ([("ip", "10.0.0.1"), ("user", "alice")], "Invalid quota entity combination"),
        ([("user", "alice"), ("user", "bob")], "duplicate entity entry"),
        ([("planet", "mars")], "Unhandled client quota entity type: planet"),
        ([("user", "")], "Empty user not supported"),
        ([("ip", "a.host.example")], "a.host.example is not a valid IP"),
    ],
)
def test_invalid_entity_is_rejected(parts, message):
    with pytest.raises(InvalidRequestError, match=message):
        entity_of(parts)


def test_address_is_normalized():
    spellings = ["2001:db8::1", "2001:DB8:0:0::1"]
    assert len({entity_of([("ip", each)]) for each in spellings}) == 1
    assert entity_of([("ip", "::ffff:10.0.0.1")]) == QuotaEntity(ip="10.0.0.1")


@pytest.mark.parametrize(
    ("filters", "loose", "strict"),
    [
        ([], ALL, []),
        ([Filter("user", EXACT, "alice")], [ALICE, ALICES_LOADER], [ALICE]),
        ([Filter("user", IS_DEFAULT)], [ANY_USER], [ANY_USER]),
        ([Filter("user", ANY_NAME)], [ALICE, ANY_USER, ALICES_LOADER], [ALICE, ANY_USER]),
        ([Filter("client-id", ANY_NAME)], [LOADER, ALICES_LOADER], [LOADER]),
        (
            [Filter("user", EXACT, "alice"), Filter("client-id", ANY_NAME)],
            [ALICES_LOADER],
            [ALICES_LOADER],
        ),
        ([Filter("ip", EXACT, "10.0.0.1")], [], []),
        ([Filter("ip", ANY_NAME)], [ANY_ADDRESS], [ANY_ADDRESS]),
    ],
)
def test_filters_match_as_in_kafka(filters, loose, strict):
    assert select(ALL, filters, strict=False) == loose
    assert select(ALL, filters, strict=True) == strict


@pytest.mark.parametrize(
    ("kind", "match_type", "name", "error"),
    [
        ("", EXACT, "alice", InvalidRequestError),
        ("planet", EXACT, "mars", UnknownApiError),
        ("user", 3, None, InvalidRequestError),
        ("user", EXACT, None, InvalidRequestError),
        ("user", IS_DEFAULT, "alice", InvalidRequestError),
        ("user", ANY_NAME, "alice", InvalidRequestError),
    ],
)
def test_invalid_filter_is_rejected(kind, match_type, name, error):
    with pytest.raises(error):
        Filter(kind, match_type, name)


def test_address_filter_cannot_be_combined():
    with pytest.raises(InvalidRequestError):
        select(ALL, [Filter("ip", ANY_NAME), Filter("user", ANY_NAME)], strict=False)
