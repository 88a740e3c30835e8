"""`kafscale spark`: Spark jobs, and diagnostics of the Spark installation.

Each job is a module of this package and is registered here in one line. Spark is imported only when
a command needs it.
"""

# ruff: noqa: D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# Spark is slow to import.

import os
from pathlib import Path
from typing import Annotated

import typer

from kafscale.cli.commands.spark import compact, lake, mirror, replay, report, restore, scrub
from kafscale.cli.commands.spark.session import SparkOptions, run
from kafscale.cli.output import Output, OutputOption, print_result

app = typer.Typer(
    no_args_is_help=True, help="Run Spark jobs on the log, on this machine or on a Spark cluster."
)
app.command("compact")(compact.compact)
app.command("lake")(lake.lake)
app.command("merge")(compact.merge)
app.command("mirror")(mirror.mirror)
app.command("replay")(replay.replay)
app.command("report")(report.report)
app.command("restore")(restore.restore)
app.command("scrub")(scrub.scrub)


@app.command()
def info(output: OutputOption = Output.TABLE) -> None:
    """Show the versions and paths of Spark, Java, Python and jars, without starting Spark.

    \b
    kafscale spark info
    export JAVA_HOME=$(kafscale spark info -o json | jq -r .java.home)
    """
    from kafscale.cli.commands.spark import session
    from kafscale.spark.runtime.diagnostics import inspect_machine

    diagnostics = inspect_machine(os.environ)
    print_result(diagnostics, output, session.print_diagnostics)


@app.command()
def check(spark: SparkOptions) -> None:
    """Start Spark and check its workers; exit with 1 if they lack something.

    \b
    kafscale spark check
    kafscale spark check --master spark://head:7077
    """
    from kafscale.spark.runtime.diagnostics import probe_workers

    run("check", probe_workers, spark)


@app.command()
def jars(
    settings: Annotated[
        Path | None,
        typer.Option(
            "--ivy-settings", exists=True, help="Ivy settings file, such as for a mirror."
        ),
    ] = None,
) -> None:
    """Download Spark's Kafka connector if necessary, and print its jars for --jars.

    \b
    spark-submit --jars $(kafscale spark jars) job.py
    """
    from kafscale.spark.runtime import java, maven
    from kafscale.spark.runtime.session import cache_directory

    home = java.find(os.environ).home
    cache = cache_directory(os.environ)
    fetched = maven.fetch(maven.KAFKA_CONNECTOR, cache, home, settings)
    typer.echo(",".join(map(str, fetched)))


@app.command()
def entry() -> None:
    """Print the path of the file that spark-submit runs instead of `kafscale spark`.

    \b
    spark-submit --master spark://head:7077 $(kafscale spark entry) check
    """
    from kafscale.cli.commands.spark import submit

    typer.echo(submit.__file__)
