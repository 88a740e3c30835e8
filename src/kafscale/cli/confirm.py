"""How commands delete: they ask first where somebody can answer, and tell what is gone."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from kafscale.errors import KafscaleError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def confirm(names: Sequence[str], loss: str, *, yes: bool) -> None:
    """Ask on a terminal whether these are to go, with all that goes with them."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"delete {', '.join(names)} with all {loss}?", abort=True, err=True)


def report(kind: str, deleted: Sequence[str], problems: Sequence[str]) -> None:
    """Say what was deleted, and fail with what was not."""
    for name in deleted:
        typer.echo(f"deleted {kind} {name}")
    if problems:
        raise KafscaleError("\n".join(problems))
