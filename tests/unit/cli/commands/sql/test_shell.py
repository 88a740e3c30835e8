"""The shell of `kafscale sql`, with a fake engine."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from kafscale.cli.commands.sql import shell
from kafscale.cli.commands.sql.printer import OutputFormat, print_result
from kafscale.errors import InvalidRequestError


class Result(NamedTuple):
    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]


class FakeEngine:
    """Returns each statement as a row, and records it."""

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
def run_lines(tmp_path, monkeypatch):
    """Runs a shell with these input lines; returns its statements and prompts."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(*lines: str | BaseException) -> tuple[list[str], list[str]]:
        engine = FakeEngine()
        waiting = [*lines, EOFError()]
        prompts = []

        def read(prompt: str) -> str:
            prompts.append(prompt)
            line = waiting.pop(0)
            if isinstance(line, BaseException):
                raise line
            return line

        shell.run_shell(engine, OutputFormat.TABLE, 100, read)
        return engine.statements, prompts

    return run


def test_shell_runs_statements_that_end_with_a_semicolon(run_lines):
    statements, prompts = run_lines("select 1; select", "2;")
    assert statements == ["select 1", "select\n2"]
    assert prompts == [shell.PROMPT, shell.PROMPT_OPEN, shell.PROMPT]


def test_shell_continues_after_an_error(run_lines, capsys):
    statements, _ = run_lines("wrong; select 1;", "slow;", "select 2;")
    assert statements == ["wrong", "select 1", "slow", "select 2"]
    captured = capsys.readouterr()
    assert "that is wrong" in captured.err
    assert "cancelled" in captured.err
    assert "select 2" in captured.out


def test_control_c_discards_the_input(run_lines):
    statements, prompts = run_lines("select 'never ended", KeyboardInterrupt(), "select 1;")
    assert statements == ["select 1"]
    assert prompts[2] == shell.PROMPT


def test_quit_command_ends_the_shell(run_lines):
    statements, _ = run_lines("select 1;", r"\q", "select 2;")
    assert statements == ["select 1"]


def test_backslash_commands_run_statements(run_lines, capsys):
    statements, _ = run_lines(r"\d", r"\d page-views;", r"\d `a.b`", r"\?", r"\nonsense")
    assert statements == ["show tables", "describe `page-views`", "describe `a.b`"]
    captured = capsys.readouterr()
    assert r"\q" in captured.out
    assert "nonsense" in captured.err


def test_table_shows_whether_the_limit_was_reached(capsys):
    print_result(FakeEngine(rows=3), "x", OutputFormat.TABLE, 2)
    assert "2 rows (limited by --limit 2)" in capsys.readouterr().out
    print_result(FakeEngine(rows=2), "x", OutputFormat.TABLE, 2)
    assert "limited" not in capsys.readouterr().out


def test_csv_and_json_contain_only_rows(capsys):
    print_result(FakeEngine(rows=2), "x", OutputFormat.CSV, 1)
    assert capsys.readouterr().out == "said\nx\n"
    print_result(FakeEngine(rows=2), "x", OutputFormat.JSON, None)
    assert (
        capsys.readouterr().out == '[\n  {\n    "said": "x"\n  },\n  {\n    "said": "x"\n  }\n]\n'
    )
    print_result(FakeEngine(), "set", OutputFormat.JSON, None)
    assert not capsys.readouterr().out
