"""`PatternIndex`: values by pattern, looked up by name."""

from kafscale.metadata.access.model import PatternType
from kafscale.security.acl.pattern_index import PatternIndex

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def index_of(*patterns):
    result = PatternIndex()
    for kind, name in patterns:
        result.put(kind, name, (kind, name))
    return result


def test_name_matches_literal_wildcard_and_prefixes():
    patterns = index_of(
        (LITERAL, "ab"),
        (LITERAL, "*"),
        (LITERAL, "a"),
        (PREFIXED, "a"),
        (PREFIXED, "ab"),
        (PREFIXED, "abc"),
        (PREFIXED, "b"),
    )
    assert set(patterns.matching("ab")) == {
        (LITERAL, "ab"),
        (LITERAL, "*"),
        (PREFIXED, "a"),
        (PREFIXED, "ab"),
    }
    assert list(patterns.matching("c")) == [(LITERAL, "*")]
    assert len(list(patterns.values())) == 7


def test_prefix_star_is_no_wildcard():
    assert list(index_of((LITERAL, "*")).matching("*")) == [(LITERAL, "*")]
    assert list(index_of((PREFIXED, "*")).matching("a")) == []
    assert list(index_of((PREFIXED, "*")).matching("*a")) == [(PREFIXED, "*")]


def test_dropped_pattern_does_not_match():
    patterns = index_of((LITERAL, "a"), (PREFIXED, "a"), (PREFIXED, "b"))
    patterns.put(PREFIXED, "a", "again")
    patterns.drop(PREFIXED, "a")
    assert list(patterns.matching("a")) == [(LITERAL, "a")]
    assert list(patterns.matching("b")) == [(PREFIXED, "b")]
    assert patterns.get(PREFIXED, "a") is None
    patterns.drop(LITERAL, "a")
    assert patterns
    patterns.drop(PREFIXED, "b")
    assert not patterns
