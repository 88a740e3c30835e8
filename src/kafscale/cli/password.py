"""How commands learn a password: typed twice, or from a file; never from their arguments.

Arguments are seen by everybody who may list the processes of the machine.
"""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

PasswordFileOption = Annotated[
    str,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help="A file with the password, or - for standard input; by default it is asked for.",
        show_default=False,
    ),
]
_HINT: Final = "--password-file"


def read_password(file: str, user: str) -> str:
    """The password that a user is to have."""
    if file:
        password = _content(file)
    elif sys.stdin.isatty():
        password = typer.prompt(
            f"password of {user}", hide_input=True, confirmation_prompt=True, err=True
        )
    else:
        raise typer.BadParameter(
            "nobody can be asked for the password here; name a file, or - for standard input",
            param_hint=_HINT,
        )
    if not password or "\n" in password:
        raise typer.BadParameter("a password is one line, and not empty", param_hint=_HINT)
    return password


def _content(file: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}", param_hint=_HINT) from None
    return text.removesuffix("\n").removesuffix("\r")
