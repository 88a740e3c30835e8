"""`kafscale docs`: write the pages of the documentation that are made from code.

The law: a generated page stands in `PAGES` and nowhere else; `make docs` writes them all, and a
test compares them all with what is committed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from kafscale.config import documentation
from kafscale.errors import KafscaleError

app = typer.Typer(no_args_is_help=True, help="Write the generated pages of the documentation.")


# What a page is made from may be slow to load, and no other command needs it.


def _metrics() -> str:
    from kafscale.observability import documentation as metrics  # noqa: PLC0415

    return metrics.page()


def _protocol() -> str:
    from kafscale.broker.routes import ROUTES  # noqa: PLC0415
    from kafscale.protocol import documentation as protocol  # noqa: PLC0415
    from kafscale.protocol.messages.api_versions import API_VERSIONS  # noqa: PLC0415

    return protocol.page({API_VERSIONS.key, *(route.api.key for route in ROUTES)})


def _permissions() -> str:
    from kafscale.broker import permissions  # noqa: PLC0415

    return permissions.page()


def _crds() -> str:
    from kafscale.operator.crd import documentation as crds  # noqa: PLC0415

    return crds.page()


PAGES: dict[str, Callable[[], str]] = {
    "configuration.md": documentation.page,
    "crds.md": _crds,
    "metrics.md": _metrics,
    "permissions.md": _permissions,
    "protocol.md": _protocol,
}
"""Every generated page: its name in the directory, and the function that returns its text."""


@app.command()
def generate(
    directory: Annotated[
        Path, typer.Option("--directory", "-d", help="Where the pages are.", metavar="DIRECTORY")
    ] = Path("docs"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if a page is out of date.")
    ] = False,
) -> None:
    """Write every generated page again; run it at the root of a checkout."""
    if not directory.is_dir():
        raise KafscaleError(f"there is no directory {directory} here; name one with --directory")
    stale = [name for name in PAGES if _read(directory / name) != PAGES[name]()]
    if check and stale:
        raise KafscaleError("\n".join(f"{directory / name} is out of date" for name in stale))
    for name in stale:
        (directory / name).write_text(PAGES[name](), encoding="utf-8")
        typer.echo(f"wrote {directory / name}")
    if not stale:
        typer.echo(f"all {len(PAGES)} generated pages are up to date")


def _read(page: Path) -> str | None:
    return page.read_text(encoding="utf-8") if page.exists() else None
