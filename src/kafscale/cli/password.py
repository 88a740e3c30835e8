"""Reads a password: from a prompt (typed twice) or from a file, never from an argument.

Every user who can list the processes of the machine can see the arguments of a command.
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
        help="File with the password, or - for standard input; by default, a prompt asks for it.",
        show_default=False,
    ),
]
_HINT: Final = "--password-file"


def read_password(file: str, user: str) -> str:
    """Read the new password of a user."""
    if file:
        password = _content(file)
    elif sys.stdin.isatty():
        password = typer.prompt(
            f"password of {user}", hide_input=True, confirmation_prompt=True, err=True
        )
    else:
        raise typer.BadParameter(
            "cannot prompt for the password: standard input is not a terminal; name a file, or -",
            param_hint=_HINT,
        )
    if not password or "\n" in password:
        raise typer.BadParameter("a password must be one line and not empty", param_hint=_HINT)
    return password


def _content(file: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {file}: {error}", param_hint=_HINT) from None
    return text.removesuffix("\n").removesuffix("\r")
