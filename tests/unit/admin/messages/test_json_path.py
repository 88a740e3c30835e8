"""JSON paths."""

import pytest

from kafscale.admin.messages import json_path
from kafscale.errors import InvalidRequestError

VALUE = {"a": {"b.c": [10, {"d": None}]}, "": 1, "0": "zero", "x[1]": 2}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a", VALUE["a"]),
        ("$.a", VALUE["a"]),
        ('a["b.c"][0]', 10),
        ('["x[1]"]', 2),
        ('a["b.c"].1.d', None),
        ('a["b.c"][7]', json_path.MISSING),
        ('a["b.c"].d', json_path.MISSING),
        ("0", "zero"),
        ("a.b", json_path.MISSING),
        ("a.b.c.d", json_path.MISSING),
    ],
)
def test_path_finds_a_field_or_nothing(path, expected):
    assert json_path.find(VALUE, json_path.parse(path)) == expected


@pytest.mark.parametrize("path", ["$", "a..b", "a]", "a[", "a[b]", "[]", " "])
def test_invalid_path_is_rejected(path):
    with pytest.raises(InvalidRequestError, match="path"):
        json_path.parse(path)


@pytest.mark.parametrize(
    ("value", "text", "equal"),
    [
        ("Köln", "Köln", True),
        ("Köln", "köln", False),
        ("12", "12", True),
        (12, "12", True),
        (12, "12.0", True),
        (True, "true", True),
        (True, "1", False),
        (1, "true", False),
        (None, "null", True),
        ("null", "null", True),
        ({"a": [1]}, '{"a":[1]}', True),
        (12, "twelve", False),
        (12, "[" * 100_000, False),
    ],
)
def test_field_equals_a_text(value, text, equal):
    assert json_path.equals(value, text) is equal
