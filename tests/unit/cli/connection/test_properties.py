"""Java properties files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.cli.connection.properties import parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a=1\nb:2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a  =  1 2  \n", {"a": "1 2  "}),
        ("a==1", {"a": "=1"}),
        ("a\nb=", {"a": "", "b": ""}),
        ("# a=1\n  ! b=2\n\n \t\nc=#3", {"c": "#3"}),
        ("a=1\\\n   2\\\n 3\nb=4", {"a": "123", "b": "4"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("a=1\\", {"a": "1"}),
        (r"a\ b\:c\=d=e", {"a b:c=d": "e"}),
        (r"a=\t\n\u00e9\"\x", {"a": '\t\né"x'}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
    ],
)
def test_lines_are_parsed_as_by_java(text, expected):
    assert parse(text) == expected


def test_invalid_escape_is_rejected():
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        parse(r"a=\u12")


def escaped(text):
    """As `Properties.store` writes it."""
    return "".join(f"\\u{ord(each):04x}" if ord(each) < 0x10000 else each for each in text)


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_escaped_properties_round_trip(expected):
    text = "".join(f"{escaped(key)}={escaped(value)}\n" for key, value in expected.items())
    assert parse(text) == expected


@given(st.text())
def test_any_text_is_parsed_or_rejected(text):
    try:
        parse(text)
    except ValueError as error:
        assert "hexadecimal" in str(error)  # noqa: PT017
