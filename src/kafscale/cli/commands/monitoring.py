"""`kafscale monitoring`: alerts for Prometheus and dashboards for Grafana, as files."""

# ruff: noqa: PLC0415 - they are put together when they are loaded, and no other command needs them.

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from kafscale.cli.output import print_table
from kafscale.errors import KafscaleError

app = typer.Typer(
    no_args_is_help=True, help="Print or write alerts for Prometheus, dashboards for Grafana."
)


@app.command()
def alerts(
    runbook: Annotated[
        str,
        typer.Option(
            "--runbook", help="Where your runbook is, for alerts to lead to.", metavar="URL"
        ),
    ] = "",
) -> None:
    r"""Print the rules of all alerts, for `rule_files` of Prometheus.

    \b
    kafscale monitoring alerts > kafscale-alerts.yaml
    """
    from kafscale.monitoring.alerts.rule import RUNBOOK
    from kafscale.monitoring.files import alerts_file

    typer.echo(alerts_file(runbook or RUNBOOK), nl=False)


@app.command()
def dashboards(
    name: Annotated[
        str, typer.Argument(help="The one to be printed; all are listed if left out.")
    ] = "",
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Write them into this directory, one file each.", metavar="DIR"),
    ] = None,
) -> None:
    r"""List the dashboards, print one as Grafana imports it, or write them to a directory.

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
            raise KafscaleError(f"there is no dashboard {name!r}; there are {known}")
        files = {f"{name}.json": files[f"{name}.json"]}
    if to is not None:
        _write(to, files)
    elif name:
        typer.echo(files[f"{name}.json"], nl=False)
    else:
        print_table(
            ("name", "panels", "what it shows"),
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
            f"{directory} cannot be written to ({error.strerror}); name another with --to"
        ) from error
