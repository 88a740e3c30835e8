"""`kafscale monitoring`: print alerts for Prometheus and dashboards for Grafana."""

# ruff: noqa: PLC0415 - the alerts and dashboards are built when they are imported.

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from kafscale.cli.output import print_table
from kafscale.errors import KafscaleError

app = typer.Typer(
    no_args_is_help=True, help="Print alerts for Prometheus and dashboards for Grafana."
)


@app.command()
def alerts(
    runbook: Annotated[
        str,
        typer.Option("--runbook", help="URL of your runbook, for links in alerts.", metavar="URL"),
    ] = "",
) -> None:
    r"""Print all alerting rules, for `rule_files` of Prometheus.

    \b
    kafscale monitoring alerts > kafscale-alerts.yaml
    """
    from kafscale.monitoring.alerts.rule import RUNBOOK
    from kafscale.monitoring.files import alerts_file

    typer.echo(alerts_file(runbook or RUNBOOK), nl=False)


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
    from kafscale.monitoring.dashboards import DASHBOARDS
    from kafscale.monitoring.files import dashboard_files

    files = dashboard_files()
    if name:
        if f"{name}.json" not in files:
            known = ", ".join(each.name for each in DASHBOARDS)
            raise KafscaleError(f"unknown dashboard {name!r}; the dashboards are {known}")
        files = {f"{name}.json": files[f"{name}.json"]}
    if to is not None:
        _write(to, files)
    elif name:
        typer.echo(files[f"{name}.json"], nl=False)
    else:
        print_table(
            ("name", "panels", "description"),
            (
                ((each.name, "bold"), str(len(list(each.panels()))), each.description)
                for each in DASHBOARDS
            ),
        )


def _write(directory: Path, files: Mapping[str, str]) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8")
            typer.echo(f"wrote {directory / name}")
    except OSError as error:
        raise KafscaleError(
            f"cannot write to {directory} ({error.strerror}); name another directory with --to"
        ) from error
