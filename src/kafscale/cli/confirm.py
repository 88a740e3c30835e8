"""Deletion: asks for confirmation on a terminal, and reports what was deleted."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from kafscale.errors import KafscaleError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


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
