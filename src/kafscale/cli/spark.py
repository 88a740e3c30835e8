"""`kafscale spark`: the jobs on Spark, and what is there to run them on.

Each job is a module of this room, `spark_<job>`, and is added here in one line. Nothing of Spark is
loaded before a command needs it.
"""

# ruff: noqa: B006, D301, PLC0415 - typer makes lists of its own; \b keeps the lines of examples
# apart; Spark is slow to load.

import os
from pathlib import Path
from typing import Annotated

import typer

from kafscale.cli import (
    spark_compact,
    spark_lake,
    spark_merge,
    spark_mirror,
    spark_replay,
    spark_report,
    spark_restore,
    spark_scrub,
)
from kafscale.cli.output import Output, OutputOption, print_data
from kafscale.cli.spark_session import ConfOption, MasterOption, run

app = typer.Typer(
    no_args_is_help=True,
    help="Process the log at scale: jobs on Spark, on this machine or on a cluster.",
)
app.command("compact")(spark_compact.compact)
app.command("lake")(spark_lake.lake)
app.command("merge")(spark_merge.merge)
app.command("mirror")(spark_mirror.mirror)
app.command("replay")(spark_replay.replay)
app.command("report")(spark_report.report)
app.command("restore")(spark_restore.restore)
app.command("scrub")(spark_scrub.scrub)


@app.command()
def info(output: OutputOption = Output.TABLE) -> None:
    """Show what there is to run jobs on: Spark, Java, Python and jars. Nothing is started.

    \b
    kafscale spark info
    export JAVA_HOME=$(kafscale spark info -o json | jq -r .java.home)
    """
    from kafscale.cli import spark_tables
    from kafscale.spark.runtime.diagnostics import examine

    found = examine(os.environ)
    if output is Output.TABLE:
        spark_tables.print_equipment(found)
    else:
        print_data(found, output)


@app.command()
def check(
    master: MasterOption = "", conf: ConfOption = [], output: OutputOption = Output.TABLE
) -> None:
    """Start Spark, and ask its workers what they have. Exits with 1 if they lack something.

    \b
    kafscale spark check
    kafscale spark check --master spark://head:7077
    """
    from kafscale.spark.runtime.diagnostics import ask_workers

    run("check", ask_workers, master=master, conf=conf, output=output)


@app.command()
def jars(
    settings: Annotated[
        Path | None,
        typer.Option("--ivy-settings", exists=True, help="Ivy's settings, such as for a mirror."),
    ] = None,
) -> None:
    """Fetch Spark's own Kafka connector, if need be, and print its jars as Spark wants them.

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
    """Print the file to give to spark-submit, in place of `kafscale spark`.

    \b
    spark-submit --master spark://head:7077 $(kafscale spark entry) check
    """
    from kafscale.cli import spark_submit

    typer.echo(spark_submit.__file__)
