"""Tests of the splitting of SQL text."""

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
def test_split_at_semicolons_outside_of_quotes_and_comments(text, expected):
    assert split(text) == expected


def test_add_keeps_lines_until_a_statement_ends():
    text = Statements()
    assert text.add("select 'a") == []
    assert text.is_open
    assert text.add("b;' as x") == []
    assert text.add("; select 2; select") == ["select 'a\nb;' as x", "select 2"]
    assert text.is_open
    assert text.add("3;") == ["select\n3"]
    assert not text.is_open


def test_clear_discards_an_unfinished_statement():
    text = Statements()
    text.add("select 'never ended")
    text.clear()
    assert not text.is_open
    assert text.add("select 1;") == ["select 1"]


def test_comments_do_not_open_a_statement():
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
def test_shown_topics(statement, pattern):
    assert shown_topics(statement) == pattern


def test_patterns_match_like_sparks():
    names = ["orders", "Order.lines", "users"]
    assert [name for name in names if matches("order*", name)] == ["orders", "Order.lines"]
    assert [name for name in names if matches("users|orders", name)] == ["orders", "users"]
    assert not matches("order.lines", "orderxlines")
