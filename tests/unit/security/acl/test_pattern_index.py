"""Things kept by pattern, found by name."""

from kafscale.metadata.access.model import PatternType
from kafscale.security.acl.pattern_index import PatternIndex

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def kept(*patterns):
    found = PatternIndex()
    for kind, name in patterns:
        found.put(kind, name, (kind, name))
    return found


def test_a_name_finds_itself_everything_and_its_prefixes():
    patterns = kept(
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


def test_a_star_is_found_once_and_a_prefix_star_is_no_wildcard():
    assert list(kept((LITERAL, "*")).matching("*")) == [(LITERAL, "*")]
    assert list(kept((PREFIXED, "*")).matching("a")) == []
    assert list(kept((PREFIXED, "*")).matching("*a")) == [(PREFIXED, "*")]


def test_a_pattern_that_is_dropped_is_not_found_any_more():
    patterns = kept((LITERAL, "a"), (PREFIXED, "a"), (PREFIXED, "b"))
    patterns.put(PREFIXED, "a", "again")
    patterns.drop(PREFIXED, "a")
    assert list(patterns.matching("a")) == [(LITERAL, "a")]
    assert list(patterns.matching("b")) == [(PREFIXED, "b")]
    assert patterns.get(PREFIXED, "a") is None
    patterns.drop(LITERAL, "a")
    assert patterns
    patterns.drop(PREFIXED, "b")
    assert not patterns
