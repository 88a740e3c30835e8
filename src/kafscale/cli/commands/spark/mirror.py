"""`kafscale spark mirror`: topics of one Kafka cluster into another."""

# ruff: noqa: B006, D301, PLC0415 - typer makes lists of its own; \b keeps the lines of examples
# apart; Spark is slow to load.

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kafscale.cli.commands.spark.copy_options import brokers, read_settings
from kafscale.cli.commands.spark.replay import Compression, CompressionOption
from kafscale.cli.commands.spark.session import (
    ConfOption,
    MasterOption,
    locate_if_any,
    recorded_session,
    show,
)
from kafscale.cli.output import Output, OutputOption
from kafscale.text.units import parse_duration

FromOption = Annotated[
    str, typer.Option("--from", metavar="HOST:PORT,...", help="Brokers of the source.")
]
ToOption = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="HOST:PORT,...",
        help="Brokers of the target; by default KAFSCALE_BOOTSTRAP_SERVERS or localhost:9092.",
        show_default=False,
    ),
]
TopicsOption = Annotated[
    list[str], typer.Option("--topic", help="A topic to mirror; may be repeated.")
]
PatternOption = Annotated[
    str, typer.Option("--pattern", help="A regular expression for names of topics.")
]
PrefixOption = Annotated[str, typer.Option("--prefix", help="What names begin with in the target.")]
IntervalOption = Annotated[
    str, typer.Option("--interval", help="Go on for ever, and rest so long in between, such as 5s.")
]
TranslateOption = Annotated[
    str,
    typer.Option(
        "--translate",
        metavar="GROUP",
        help="Mirror nothing; let this consumer group go on in the target where it is.",
    ),
]
FromConfigOption = Annotated[
    list[str], typer.Option("--from-config", metavar="KEY=VALUE", help="A setting of librdkafka.")
]
FromFileOption = Annotated[
    Path | None, typer.Option("--from-config-file", exists=True, help="A file of such.")
]
ToConfigOption = Annotated[
    list[str], typer.Option("--to-config", metavar="KEY=VALUE", help="The same, for the target.")
]
ToFileOption = Annotated[
    Path | None, typer.Option("--to-config-file", exists=True, help="A file of such.")
]


def mirror(  # noqa: PLR0917 - typer makes options of them.
    source: FromOption,
    target: ToOption = "",
    topic: TopicsOption = [],
    pattern: PatternOption = "",
    prefix: PrefixOption = "",
    interval: IntervalOption = "",
    translate: TranslateOption = "",
    compression: CompressionOption = Compression.LZ4,
    source_config: FromConfigOption = [],
    source_config_file: FromFileOption = None,
    target_config: ToConfigOption = [],
    target_config_file: ToFileOption = None,
    master: MasterOption = "",
    conf: ConfOption = [],
    output: OutputOption = Output.TABLE,
) -> None:
    """Copy topics from any Kafka cluster into another, once or for ever.

    Keys, values, headers, timestamps and partitions are kept. Each record gets a header that says
    where it is from, so that the target tells how far the mirror is: killed at any time, it goes on
    without losing a record or writing one twice. Secrets of clusters belong into a file.

    \b
    kafscale spark mirror --from kafka:9092 --topic orders
    kafscale spark mirror --from kafka:9092 --pattern 'shop\\..*' --interval 5s
    kafscale spark mirror --from kafka:9092 --topic orders --translate billing
    """
    if not (topic or pattern):
        raise typer.BadParameter("name topics, or a pattern for them", param_hint="--topic")
    try:
        rest_s = parse_duration(interval) / 1000 if interval else None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--interval") from None
    servers = brokers(source), brokers(target)
    settings_of_source = read_settings(source_config, source_config_file)
    settings_of_target = read_settings(target_config, target_config_file)

    from kafscale.spark.jobs.mirror import job
    from kafscale.spark.jobs.mirror.cluster import Cluster

    settings = job.MirrorSettings(
        source=Cluster(servers[0], settings_of_source),
        target=Cluster(servers[1], settings_of_target),
        topics=tuple(topic),
        pattern=pattern,
        prefix=prefix,
        codec=compression.value,
        interval_s=rest_s,
    )
    if translate:
        show(job.run_translation(settings, translate), output)
        return
    with recorded_session("mirror", locate_if_any(), topic, master=master, conf=conf) as (
        spark,
        record,
    ):
        notify = partial(typer.echo, err=True)
        summary = job.run(spark, settings, notify=notify, on_progress=record.update_progress)
        record.set_summary(summary)
    show(summary, output)
