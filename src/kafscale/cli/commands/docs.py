"""`kafscale docs`: generate the documentation pages that are derived from code.

`PAGES` lists every generated page; `make docs` writes them, and a test compares them with the
committed files. Alerts and dashboards are written too, if there is a deploy directory.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from kafscale.config import docs
from kafscale.errors import KafscaleError

app = typer.Typer(no_args_is_help=True, help="Generate pages of the documentation.")


# The sources of pages are slow to import, so each function imports its own.


def _metrics() -> str:
    from kafscale.observability.metrics import docs as metrics  # noqa: PLC0415

    return metrics.page()


def _protocol() -> str:
    from kafscale.broker.requests.routes import ROUTES  # noqa: PLC0415
    from kafscale.protocol import docs as protocol  # noqa: PLC0415
    from kafscale.protocol.messages.api_versions import API_VERSIONS  # noqa: PLC0415

    return protocol.page({API_VERSIONS.key, *(route.api.key for route in ROUTES)})


def _monitoring() -> str:
    from kafscale.monitoring import files  # noqa: PLC0415

    return files.docs_page()


def _permissions() -> str:
    from kafscale.broker.security import permissions  # noqa: PLC0415

    return permissions.page()


def _crds() -> str:
    from kafscale.operator.crd import docs as crds  # noqa: PLC0415

    return crds.page()


PAGES: dict[str, Callable[[], str]] = {
    "configuration.md": docs.page,
    "crds.md": _crds,
    "metrics.md": _metrics,
    "monitoring.md": _monitoring,
    "permissions.md": _permissions,
    "protocol.md": _protocol,
}
"""Every generated page: its name in the directory, and the function that returns its text."""


@app.command()
def generate(
    directory: Annotated[
        Path, typer.Option("--directory", "-d", help="Directory of the pages.", metavar="DIRECTORY")
    ] = Path("docs"),
    deployed: Annotated[
        Path,
        typer.Option(
            "--deployed",
            help="Directory of the Helm chart; alerts and dashboards are written if it exists.",
            metavar="DIRECTORY",
        ),
    ] = Path("deploy"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if a page is out of date.")
    ] = False,
) -> None:
    """Write all generated pages; run this at the root of a checkout."""
    if not directory.is_dir():
        raise KafscaleError(f"there is no directory {directory}; name one with --directory")
    expected = {directory / name: text() for name, text in PAGES.items()}
    if deployed.is_dir():
        expected |= {deployed / name: text for name, text in _deployed_files().items()}
    stale = [path for path, text in expected.items() if _read(path) != text]
    if check and stale:
        raise KafscaleError("\n".join(f"{path} is out of date" for path in stale))
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(expected[path], encoding="utf-8")
        typer.echo(f"wrote {path}")
    if not stale:
        typer.echo(f"all {len(expected)} generated pages are up to date")


def _deployed_files() -> Mapping[str, str]:
    from kafscale.monitoring import files  # noqa: PLC0415

    return files.deployed_files()


def _read(page: Path) -> str | None:
    return page.read_text(encoding="utf-8") if page.exists() else None
