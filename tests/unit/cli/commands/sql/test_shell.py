"""The shell of `kafscale sql`: what is typed, and what it answers."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from kafscale.cli.commands.sql import shell
from kafscale.cli.commands.sql.printer import Form, print_result
from kafscale.errors import InvalidRequestError


class Result(NamedTuple):
    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]


class Topics:
    """Answers each statement with itself, and remembers it."""

    def __init__(self, rows: int = 1) -> None:
        self.statements: list[str] = []
        self.rows = rows

    def run(self, statement: str, limit: int | None = None) -> Result:
        self.statements.append(statement)
        if statement == "wrong":
            raise InvalidRequestError("that is wrong")
        if statement == "slow":
            raise KeyboardInterrupt
        if statement == "set":
            return Result((), ())
        return Result(("said",), [(statement,)] * min(self.rows, limit or self.rows))


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """Types lines into a shell; what it asked, and the prompts it showed."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def type_(*lines: str | BaseException) -> tuple[list[str], list[str]]:
        topics = Topics()
        waiting = [*lines, EOFError()]
        prompts = []

        def read(prompt: str) -> str:
            prompts.append(prompt)
            line = waiting.pop(0)
            if isinstance(line, BaseException):
                raise line
            return line

        shell.converse(topics, Form.TABLE, 100, read)
        return topics.statements, prompts

    return type_


def test_statements_are_run_when_they_end(typed):
    statements, prompts = typed("select 1; select", "2;")
    assert statements == ["select 1", "select\n2"]
    assert prompts == [shell.PROMPT, shell.PROMPT_OPEN, shell.PROMPT]


def test_an_error_is_printed_and_the_shell_goes_on(typed, capsys):
    statements, _ = typed("wrong; select 1;", "slow;", "select 2;")
    assert statements == ["wrong", "select 1", "slow", "select 2"]
    told = capsys.readouterr()
    assert "that is wrong" in told.err
    assert "given up" in told.err
    assert "select 2" in told.out


def test_control_c_gives_up_what_is_typed(typed):
    statements, prompts = typed("select 'never ended", KeyboardInterrupt(), "select 1;")
    assert statements == ["select 1"]
    assert prompts[2] == shell.PROMPT


def test_the_shell_ends_when_it_is_told_to(typed):
    statements, _ = typed("select 1;", r"\q", "select 2;")
    assert statements == ["select 1"]


def test_short_forms_stand_for_statements(typed, capsys):
    statements, _ = typed(r"\d", r"\d page-views;", r"\d `a.b`", r"\?", r"\nonsense")
    assert statements == ["show tables", "describe `page-views`", "describe `a.b`"]
    told = capsys.readouterr()
    assert r"\q" in told.out
    assert "nonsense" in told.err


def test_a_table_says_whether_there_are_more_rows(capsys):
    print_result(Topics(rows=3), "x", Form.TABLE, 2)
    assert "2 rows, and there are more (--limit 2)" in capsys.readouterr().out
    print_result(Topics(rows=2), "x", Form.TABLE, 2)
    assert "more" not in capsys.readouterr().out


def test_programs_get_rows_and_nothing_else(capsys):
    print_result(Topics(rows=2), "x", Form.CSV, 1)
    assert capsys.readouterr().out == "said\nx\n"
    print_result(Topics(rows=2), "x", Form.JSON, None)
    assert (
        capsys.readouterr().out == '[\n  {\n    "said": "x"\n  },\n  {\n    "said": "x"\n  }\n]\n'
    )
    print_result(Topics(), "set", Form.JSON, None)
    assert not capsys.readouterr().out
