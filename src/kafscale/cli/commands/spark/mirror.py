"""`kafscale spark mirror`: copy topics from one Kafka cluster to another."""

# ruff: noqa: B006, D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# Spark is slow to import.

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kafscale.cli.commands.spark.options import bootstrap_servers, read_settings
from kafscale.cli.commands.spark.replay import CompressionOption
from kafscale.cli.commands.spark.session import (
    SparkOptions,
    configured_location,
    recorded_session,
    show,
)
from kafscale.cli.options import parse_option
from kafscale.text.units import parse_duration

FromOption = Annotated[
    str, typer.Option("--from", metavar="HOST:PORT,...", help="Bootstrap servers of the source.")
]
ToOption = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="HOST:PORT,...",
        help="Servers of the target; by default KAFSCALE_BOOTSTRAP_SERVERS or localhost:9092.",
        show_default=False,
    ),
]
TopicsOption = Annotated[
    list[str], typer.Option("--topic", help="A topic to mirror; may be repeated.")
]
PatternOption = Annotated[
    str, typer.Option("--pattern", help="Regular expression for topic names.")
]
PrefixOption = Annotated[str, typer.Option("--prefix", help="Prefix of topic names in the target.")]
IntervalOption = Annotated[
    str, typer.Option("--interval", help="Repeat forever with this pause, such as 5s.")
]
TranslateOption = Annotated[
    str,
    typer.Option(
        "--translate",
        metavar="GROUP",
        help="Mirror nothing; translate the committed offsets of this consumer group, and commit"
        " them in the target, where they never move back.",
    ),
]
FromConfigOption = Annotated[
    list[str],
    typer.Option("--from-config", metavar="KEY=VALUE", help="librdkafka property of the source."),
]
FromFileOption = Annotated[
    Path | None,
    typer.Option("--from-config-file", exists=True, help="File with librdkafka properties."),
]
ToConfigOption = Annotated[
    list[str],
    typer.Option("--to-config", metavar="KEY=VALUE", help="librdkafka property of the target."),
]
ToFileOption = Annotated[
    Path | None,
    typer.Option("--to-config-file", exists=True, help="File with librdkafka properties."),
]


def mirror(
    *,
    source: FromOption,
    target: ToOption = "",
    topic: TopicsOption = [],
    pattern: PatternOption = "",
    prefix: PrefixOption = "",
    interval: IntervalOption = "",
    translate: TranslateOption = "",
    compression: CompressionOption = "lz4",
    source_config: FromConfigOption = [],
    source_config_file: FromFileOption = None,
    target_config: ToConfigOption = [],
    target_config_file: ToFileOption = None,
    spark: SparkOptions,
) -> None:
    """Copy topics from any Kafka cluster to another, once or continuously.

    Keys, values, headers, timestamps and partitions are kept. Each record gets a header with its
    source offset, so a restarted job continues without losing or duplicating records. Secrets are
    accepted in config files only.

    \b
    kafscale spark mirror --from kafka:9092 --topic orders
    kafscale spark mirror --from kafka:9092 --pattern 'shop\\..*' --interval 5s
    kafscale spark mirror --from kafka:9092 --topic orders --translate billing
    """
    if not (topic or pattern):
        raise typer.BadParameter("name topics with --topic or --pattern", param_hint="--topic")
    rest_s = parse_option("--interval", interval, parse_duration) / 1000 if interval else None
    servers = bootstrap_servers(source), bootstrap_servers(target)
    settings_of_source = read_settings("--from-config", source_config, source_config_file)
    settings_of_target = read_settings("--to-config", target_config, target_config_file)

    from kafscale.spark.jobs.mirror import job
    from kafscale.spark.jobs.mirror.cluster import Cluster

    settings = job.MirrorSettings(
        source=Cluster(servers[0], settings_of_source),
        target=Cluster(servers[1], settings_of_target),
        topics=tuple(topic),
        pattern=pattern,
        prefix=prefix,
        codec=compression,
        interval_s=rest_s,
    )
    if translate:
        show(job.run_translation(settings, translate), spark.output)
        return
    with recorded_session("mirror", configured_location(), topic, spark) as (session, record):
        notify = partial(typer.echo, err=True)
        summary = job.run(session, settings, notify=notify, on_progress=record.update_progress)
        record.set_summary(summary)
    show(summary, spark.output)
