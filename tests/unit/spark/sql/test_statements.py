"""Where statements end, whatever stands in them."""

import pytest

from kafscale.spark.sql.statements import Statements, matches, shown_topics, split


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ;; ; ", []),
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ("select 1; select 2", ["select 1", "select 2"]),
        ("select ';'; x", ["select ';'", "x"]),
        (r"select 'it\'s;'; x", [r"select 'it\'s;'", "x"]),
        ("select 'it''s;'; x", ["select 'it''s;'", "x"]),
        ('select ";"; x', ['select ";"', "x"]),
        ("select * from `a;b`; x", ["select * from `a;b`", "x"]),
        ("select 1 -- no; end\n+ 1; x", ["select 1 -- no; end\n+ 1", "x"]),
        ("select 1 /* no;\nend */ + 1; x", ["select 1 /* no;\nend */ + 1", "x"]),
        ("select 4 - 2 / 1; x", ["select 4 - 2 / 1", "x"]),
        ("select '-- no comment'; x", ["select '-- no comment'", "x"]),
        ("-- a comment; only\n/* another; */", []),
        ("select 1; -- the end", ["select 1"]),
        ("select 'never ended; x", ["select 'never ended; x"]),
    ],
)
def test_a_semicolon_ends_a_statement_unless_it_is_quoted_or_in_a_comment(text, expected):
    assert split(text) == expected


def test_lines_are_kept_until_a_statement_ends():
    text = Statements()
    assert text.add("select 'a") == []
    assert text.is_open
    assert text.add("b;' as x") == []
    assert text.add("; select 2; select") == ["select 'a\nb;' as x", "select 2"]
    assert text.is_open
    assert text.add("3;") == ["select\n3"]
    assert not text.is_open


def test_what_is_typed_can_be_given_up():
    text = Statements()
    text.add("select 'never ended")
    text.clear()
    assert not text.is_open
    assert text.add("select 1;") == ["select 1"]


def test_comments_alone_do_not_open_a_statement():
    text = Statements()
    assert text.add("-- about the next one") == []
    assert not text.is_open


@pytest.mark.parametrize(
    ("statement", "pattern"),
    [
        ("show tables", "*"),
        ("SHOW\n Topics", "*"),
        ("show tables 'a*'", "a*"),
        ("show tables like 'a|b'", "a|b"),
        ('show tables /* of mine */ like "x"', "x"),
        ("show functions", None),
        ("show tables in other", None),
        ("select 'show tables'", None),
    ],
)
def test_who_asks_for_topics_is_understood(statement, pattern):
    assert shown_topics(statement) == pattern


def test_patterns_are_those_of_spark():
    names = ["orders", "Order.lines", "users"]
    assert [name for name in names if matches("order*", name)] == ["orders", "Order.lines"]
    assert [name for name in names if matches("users|orders", name)] == ["orders", "users"]
    assert not matches("order.lines", "orderxlines")
