r"""The interactive shell of `kafscale sql`.

A statement ends with `;` and may span several lines. An error in a statement does not end the
shell. Control-C cancels the input or the running statement, Control-D ends the shell. The history
is stored in a file.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafscale.cli.commands.sql.printer import OutputFormat, print_result
from kafscale.cli.output import print_error, print_line
from kafscale.errors import KafscaleError
from kafscale.spark.sql.statements import Statements

if TYPE_CHECKING:
    from kafscale.spark.sql.engine import SqlEngine

PROMPT: Final = "sql> "
PROMPT_OPEN: Final = "...> "
HISTORY: Final = Path("~/.kafscale_sql_history")
HISTORY_LINES_MAX: Final = 10_000
HELP: Final = r"""A statement ends with ; and may take several lines.
\d         list the topics, like `show tables`
\d TOPIC   list the columns of a topic, like `describe`
\? \h      show this help
\q         quit, like Control-D; Control-C cancels a statement"""


def run_shell(
    engine: "SqlEngine", output: OutputFormat, limit: int | None, read: Callable[[str], str] = input
) -> None:
    """Run statements until the input ends; `read` takes a prompt and returns a line."""
    print_line(r"End statements with a semicolon; \q quits, \? shows help.")
    text = Statements()
    with _history():
        while True:
            try:
                line = read(PROMPT_OPEN if text.is_open else PROMPT)
            except EOFError:
                print_line()
                return
            except KeyboardInterrupt:
                text.clear()
                print_line()
                continue
            if not text.is_open and line.lstrip().startswith("\\"):
                if line.split()[0] == r"\q":
                    return
                statements = _command(line.strip())
            else:
                statements = text.add(line)
            for statement in statements:
                _run_statement(engine, statement, output, limit)


def _run_statement(
    engine: "SqlEngine", statement: str, output: OutputFormat, limit: int | None
) -> None:
    try:
        print_result(engine, statement, output, limit)
    except KafscaleError as error:
        print_error(str(error))
    except KeyboardInterrupt:
        print_error("cancelled")


def _command(line: str) -> list[str]:
    """The statements for a backslash command."""
    name, _, topic = line.partition(" ")
    match name:
        case r"\d":
            return [f"describe `{topic.strip(' ;`')}`" if topic else "show tables"]
        case r"\?" | r"\h":
            print_line(HELP)
        case _:
            print_error(rf"unknown command {name}; \? lists the commands")
    return []


@contextmanager
def _history() -> Iterator[None]:
    """Enable line editing and history, if the system has readline."""
    try:
        import readline  # noqa: PLC0415 - not available on all systems.
    except ImportError:
        yield
        return
    path = HISTORY.expanduser()
    with suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(HISTORY_LINES_MAX)
    try:
        yield
    finally:
        with suppress(OSError):
            readline.write_history_file(path)
