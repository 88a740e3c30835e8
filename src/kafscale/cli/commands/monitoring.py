"""`kafscale monitoring`: print alerts for Prometheus and dashboards for Grafana.

The files are generated; `generators/monitoring` in the repository has their source.
"""

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Final

import typer

from kafscale.cli.output import Part, print_table
from kafscale.errors import KafscaleError

_FILES: Final = resources.files("kafscale") / "monitoring"
_RUNBOOK: Final = "docs/operations/runbook.md"

app = typer.Typer(
    no_args_is_help=True, help="Print alerts for Prometheus and dashboards for Grafana."
)


@app.command()
def alerts(
    runbook: Annotated[
        str,
        typer.Option("--runbook", help="URL of your runbook, for links in alerts.", metavar="URL"),
    ] = _RUNBOOK,
) -> None:
    r"""Print all alerting rules, for `rule_files` of Prometheus.

    \b
    kafscale monitoring alerts > kafscale-alerts.yaml
    """
    rules = (_FILES / "alerts.yaml").read_text(encoding="utf-8")
    typer.echo(rules.replace(_RUNBOOK, runbook), nl=False)


@app.command()
def dashboards(
    name: Annotated[
        str, typer.Argument(help="The dashboard to print; by default, all are listed.")
    ] = "",
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", help="Write one file for each dashboard to this directory.", metavar="DIR"
        ),
    ] = None,
) -> None:
    r"""List the dashboards, print one as JSON for Grafana, or write them to a directory.

    \b
    kafscale monitoring dashboards
    kafscale monitoring dashboards cluster > cluster.json
    kafscale monitoring dashboards --to /var/lib/grafana/kafscale
    """
    files = sorted((_FILES / "dashboards").iterdir(), key=lambda file: file.name)
    texts = {file.name.removesuffix(".json"): file.read_text(encoding="utf-8") for file in files}
    if name:
        if name not in texts:
            known = ", ".join(texts)
            raise KafscaleError(f"unknown dashboard {name!r}; the dashboards are {known}")
        texts = {name: texts[name]}
    if to is not None:
        _write(to, texts)
    elif name:
        typer.echo(texts[name], nl=False)
    else:
        rows = (_row(each, text) for each, text in texts.items())
        print_table(("name", "panels", "description"), rows)


def _row(name: str, text: str) -> tuple[Part, ...]:
    dashboard = json.loads(text)
    panels = sum(panel["type"] != "row" for panel in dashboard["panels"])
    return (name, "bold"), str(panels), dashboard["description"]


def _write(directory: Path, texts: Mapping[str, str]) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            path = directory / f"{name}.json"
            path.write_text(text, encoding="utf-8")
            typer.echo(f"wrote {path}")
    except OSError as error:
        raise KafscaleError(
            f"cannot write to {directory} ({error.strerror}); name another directory with --to"
        ) from error
