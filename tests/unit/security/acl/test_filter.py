"""`AclFilter`: which ACLs match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from kafscale.metadata.access.model import Operation, PatternType, Permission, ResourceType
from kafscale.security.acl.filter import AclFilter
from unit.security.acls import ACLS, acl, deny, prefixed

LITERAL, PREFIXED, MATCH = PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH
ORDERS, EVERYTHING, PREFIX = acl(), acl(name="*"), prefixed(Operation.READ, "ord")


@given(rule=ACLS)
def test_empty_filter_matches_all(rule):
    assert AclFilter().matches(rule)
    assert AclFilter(pattern_type=MATCH).matches(rule)
    assert AclFilter().only() is None


@given(rule=ACLS, other=ACLS)
def test_complete_filter_matches_one_acl(rule, other):
    exact = AclFilter(**asdict(rule))
    assert exact.only() == rule
    assert exact.matches(other) == (other == rule)


@given(rule=ACLS, left_out=st.sampled_from(sorted(asdict(ORDERS))))
def test_incomplete_filter_has_no_single_match(rule, left_out):
    nothing = getattr(AclFilter(), left_out)
    wide = replace(AclFilter(**asdict(rule)), **{left_out: nothing})
    assert wide.only() is None
    assert wide.matches(rule)


@pytest.mark.parametrize(
    ("kind", "name", "result"),
    [
        (PatternType.ANY, "orders", [ORDERS]),
        (PatternType.ANY, "ord", [PREFIX]),
        (PatternType.ANY, "*", [EVERYTHING]),
        (LITERAL, "orders", [ORDERS]),
        (LITERAL, None, [ORDERS, EVERYTHING]),
        (PREFIXED, None, [PREFIX]),
        (PREFIXED, "orders", []),
        (PREFIXED, "ord", [PREFIX]),
        (MATCH, "orders", [ORDERS, EVERYTHING, PREFIX]),
        (MATCH, "ordinary", [EVERYTHING, PREFIX]),
        (MATCH, "or", [EVERYTHING]),
    ],
)
def test_pattern_type_determines_name_matching(kind, name, result):
    expected = AclFilter(pattern_type=kind, resource_name=name)
    assert [rule for rule in (ORDERS, EVERYTHING, PREFIX) if expected.matches(rule)] == result


@pytest.mark.parametrize(
    "other",
    [
        acl(principal="User:bob"),
        acl(host="10.0.0.1"),
        acl(kind=ResourceType.GROUP),
        acl(Operation.WRITE),
        deny(),
    ],
    ids=str,
)
def test_all_given_fields_must_match(other):
    desired = AclFilter(
        ResourceType.TOPIC, MATCH, "orders", "User:alice", "*", Operation.READ, Permission.ALLOW
    )
    assert desired.matches(ORDERS)
    assert not desired.matches(other)
