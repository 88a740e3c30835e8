"""The contract in TypeScript: the committed file is what is written from the code."""

from pathlib import Path
from typing import Literal

import pytest

from kafscale.console.schema.base import Point
from kafscale.console.schema.typescript import rendered, typed

COMMITTED = Path(__file__).parents[4] / "web" / "src" / "api" / "contract.ts"


def test_the_committed_types_are_those_of_the_contract():
    assert COMMITTED.read_text() == rendered(), "run: make generate"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (int, "number"),
        (str | None, "string | null"),
        (int | float | None, "number | null"),
        (list[Point], "Point[]"),
        (list[str | None], "(string | null)[]"),
        (dict[str, list[int]], "Record<string, number[]>"),
        (Literal["a", "b c"], '"a" | "b c"'),
        (dict[str, list[int]] | None, "Record<string, number[]> | null"),
    ],
)
def test_types_have_words(kind, words):
    assert typed(kind, {}) == words


@pytest.mark.parametrize("kind", [bytes, dict[int, str], tuple[int, str]])
def test_a_type_without_words_is_refused(kind):
    with pytest.raises(TypeError):
        typed(kind, {})


def test_what_is_asked_may_leave_defaults_out_and_what_is_told_may_not():
    text = rendered()
    browse = text[text.index("export interface Browse ") :].partition("}")[0]
    payload = text[text.index("export interface Payload ") :].partition("}")[0]
    assert "  limit?: number;" in browse
    assert "  schemaId: number | null;" in payload


def test_names_are_declared_once():
    names = [line.split()[2] for line in rendered().splitlines() if line.startswith("export ")]
    assert len(names) == len(set(names))
