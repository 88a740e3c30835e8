"""Options that several commands share, with their parsers and prompts.

Options can be grouped: `expand_option_groups` replaces a parameter whose type is a dataclass by one
option for each field.

Passwords come from a prompt or a file, never from an argument: every user who can list the
processes of the machine can see the arguments of a command.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from kafscale.errors import KafscaleError

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
"""Compression types of batches, by their Kafka names."""
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

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


class Format(StrEnum):
    """Text formats for the bytes of keys and values."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    BASE64 = "base64"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="Format of keys and values.")]


def parse_option(option: str, text: str, parse: Callable[[str], int]) -> int:
    """The value of an option: a size or a duration."""
    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} {error}", param_hint=option) from None


def expand_option_groups(app: typer.Typer) -> None:
    """Replace parameters whose type is a dataclass by one option for each of its fields."""
    for group in app.registered_groups:
        if group.typer_instance is not None:
            expand_option_groups(group.typer_instance)
    for command in app.registered_commands:
        if command.callback is not None:
            command.callback = _with_options_of_groups(command.callback)


def _with_options_of_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    parameters: list[Parameter] = []
    groups: dict[str, type[Any]] = {}
    for each in signature(command).parameters.values():
        if isinstance(each.annotation, type) and is_dataclass(each.annotation):
            groups[each.name] = each.annotation
            parameters += map(_parameter, fields(each.annotation))
        else:
            parameters.append(each.replace(kind=Parameter.KEYWORD_ONLY))
    if not groups:
        return command

    @wraps(command)
    def wrapper(**values: Any) -> Any:
        for name, group in groups.items():
            values[name] = group(**{each.name: values.pop(each.name) for each in fields(group)})
        return command(**values)

    wrapper.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return wrapper


def _parameter(option: Field[Any]) -> Parameter:
    """A field with a default as a parameter."""
    default = option.default if option.default_factory is MISSING else option.default_factory()
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=option.type)


def parse_pairs(pairs: Sequence[str]) -> list[tuple[str, str]]:
    """The names and values that options of the form key=value give.

    >>> parse_pairs(["retention.ms=1000", "note=a=b"])
    [('retention.ms', '1000'), ('note', 'a=b')]
    """
    parsed = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise typer.BadParameter(f"{pair!r} is not of the form key=value")
        parsed.append((key.strip(), value))
    return parsed


def confirm_deletion(names: Sequence[str], loss: str, *, yes: bool) -> None:
    """Ask on a terminal whether to delete `names`; `loss` is what is deleted with them."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"delete {', '.join(names)} with all {loss}?", abort=True, err=True)


def report_deletions(kind: str, deleted: Sequence[str], problems: Sequence[str]) -> None:
    """Print what was deleted; raise an error that lists what was not."""
    for name in deleted:
        typer.echo(f"deleted {kind} {name}")
    if problems:
        raise KafscaleError("\n".join(problems))


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
