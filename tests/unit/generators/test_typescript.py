"""The generated TypeScript types."""

from typing import Literal

import pytest

from generators.typescript import render, typescript_type
from kafscale.console.schema.base import Point


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (int, "number"),
        (str | None, "string | null"),
        (int | float | None, "number | null"),
        (list[Point], "Point[]"),
        (tuple[Point, ...], "Point[]"),
        (list[str | None], "(string | null)[]"),
        (dict[str, list[int]], "Record<string, number[]>"),
        (Literal["a", "b c"], '"a" | "b c"'),
        (dict[str, list[int]] | None, "Record<string, number[]> | null"),
    ],
)
def test_python_types_have_typescript_types(kind, expected):
    assert typescript_type(kind, {Point: "Point"}) == expected


@pytest.mark.parametrize("kind", [bytes, dict[bytes, str], tuple[int, str]])
def test_unsupported_types_are_rejected(kind):
    with pytest.raises(TypeError):
        typescript_type(kind, {})


def test_only_request_fields_with_defaults_are_optional():
    text = render()
    browse = text[text.index("export interface Browse ") :].partition("}")[0]
    payload = text[text.index("export interface Payload ") :].partition("}")[0]
    assert "  limit?: number;" in browse
    assert "  schemaId: number | null;" in payload


def test_names_are_declared_once():
    names = [line.split()[2] for line in render().splitlines() if line.startswith("export ")]
    assert len(names) == len(set(names))
