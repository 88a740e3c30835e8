r"""The shell of `kafscale sql`: statements are typed, over several lines if need be, and answered.

The law: whatever is wrong with a statement, the shell goes on. Control-C gives up what is typed or
what runs, Control-D ends the shell. What was typed is remembered from one shell to the next.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafscale.cli.commands.sql.printer import Form, print_result
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
\d         the topics, as `show tables` does
\d TOPIC   the columns of a topic, as `describe` does
\? \h      this help
\q         the end, as Control-D is; Control-C gives up a statement"""


def converse(
    topics: "SqlEngine", form: Form, limit: int | None, read: Callable[[str], str] = input
) -> None:
    """Answer statements until there are no more; `read` is given a prompt and returns a line."""
    print_line(r"Statements end with ; and \q ends the shell. \? tells more.")
    text = Statements()
    with _remembering():
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
                _answer(topics, statement, form, limit)


def _answer(topics: "SqlEngine", statement: str, form: Form, limit: int | None) -> None:
    try:
        print_result(topics, statement, form, limit)
    except KafscaleError as error:
        print_error(str(error))
    except KeyboardInterrupt:
        print_error("given up")


def _command(line: str) -> list[str]:
    """The statement that a short form means."""
    name, _, topic = line.partition(" ")
    match name:
        case r"\d":
            return [f"describe `{topic.strip(' ;`')}`" if topic else "show tables"]
        case r"\?" | r"\h":
            print_line(HELP)
        case _:
            print_error(rf"there is no {name}; \? tells what there is")
    return []


@contextmanager
def _remembering() -> Iterator[None]:
    """Lines can be edited and found again, where the system can do that."""
    try:
        import readline  # noqa: PLC0415 - not everywhere.
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
