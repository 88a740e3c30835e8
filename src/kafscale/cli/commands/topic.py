"""`kafscale topic`: create, list, describe, alter and delete topics."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to import.

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.cli.connection import BootstrapOption, run
from kafscale.cli.options import YesOption, confirm_deletion, parse_pairs, report_deletions
from kafscale.cli.output import Output, OutputOption, print_line, print_result, print_table
from kafscale.text.formatting import format_size, pluralize

if TYPE_CHECKING:
    from kafscale.admin.topics.topics import DescribedTopic, ListedTopic, PartitionOffsets
    from kafscale.client.client import Client

app = typer.Typer(no_args_is_help=True, help="Create, list, describe, alter and delete topics.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the topic.")]
ConfigOption = Annotated[
    list[str], typer.Option("--config", metavar="KEY=VALUE", help="Topic config; may be repeated.")
]


@app.command()
def create(
    name: NameArgument,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            "-p",
            min=1,
            help="Number of partitions; by default as the broker is configured.",
        ),
    ] = None,
    config: ConfigOption = [],  # noqa: B006 - typer makes a list of its own.
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Do nothing if the topic exists.")
    ] = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Create a topic.

    \b
    kafscale topic create orders
    kafscale topic create orders -p 6 --config retention.ms=86400000
    """
    from kafscale.admin.topics import topics as topic_admin

    configs = dict(parse_pairs(config))
    created = run(
        bootstrap,
        lambda client: topic_admin.create(
            client, name, partitions, configs, exists_ok=if_not_exists
        ),
    )
    if created is None:
        typer.echo(f"topic {name} already exists")
    else:
        count = created.partition_count
        # Brokers return the partition count since CreateTopics v5.
        detail = f" with {pluralize(count, 'partition')}" if count > 0 else ""
        typer.echo(f"created topic {name}{detail}")


@app.command("list")
def list_topics(
    exclude_internal: Annotated[
        bool, typer.Option("--exclude-internal", help="Do not list internal topics.")
    ] = False,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """List the topics.

    \b
    kafscale topic list
    kafscale topic list -o json | jq -r '.[].name'
    """
    from kafscale.admin.topics import topics as topic_admin

    topics = run(bootstrap, topic_admin.list_all)
    if exclude_internal:
        topics = [topic for topic in topics if not topic.internal]
    print_result(topics, output, print_topics)


@app.command()
def describe(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Names of the topics; by default all but internal ones."
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """Show partitions, leaders, offsets, sizes and non-default configs of topics.

    \b
    kafscale topic describe orders
    kafscale topic describe -o yaml
    """
    from kafscale.admin.topics import topics as topic_admin

    topics = run(bootstrap, lambda client: topic_admin.describe(client, names or ()))
    print_result(topics, output, print_descriptions)


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of the topics.")],
    yes: YesOption = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Ignore topics that do not exist.")
    ] = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Delete topics with all their records. On a terminal, the command asks for confirmation.

    \b
    kafscale topic delete orders
    kafscale topic delete orders payments --yes
    """
    from kafscale.admin.topics import topics as topic_admin

    confirm_deletion(names, "records", yes=yes)
    deleted, problems = run(
        bootstrap, lambda client: topic_admin.delete(client, names, missing_ok=if_exists)
    )
    report_deletions("topic", deleted, problems)


@app.command()
def alter(
    name: NameArgument,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", min=1, help="New total number of partitions."),
    ] = None,
    config: ConfigOption = [],  # noqa: B006
    delete_config: Annotated[
        list[str],
        typer.Option(
            "--delete-config",
            metavar="KEY",
            help="Reset this config to its default; may be repeated.",
        ),
    ] = [],  # noqa: B006
    bootstrap: BootstrapOption = "",
) -> None:
    """Change the configs of a topic, or add partitions.

    \b
    kafscale topic alter orders --config retention.ms=3600000
    kafscale topic alter orders --delete-config retention.ms --partitions 12
    """
    from kafscale.admin.topics import topics as topic_admin

    configs = dict(parse_pairs(config))
    if not (configs or delete_config or partitions):
        raise typer.BadParameter("name a change: --partitions, --config or --delete-config")

    async def change(client: "Client") -> None:
        if configs or delete_config:
            await topic_admin.alter_configs(client, name, configs, delete_config)
            typer.echo(f"changed the configs of topic {name}")
        if partitions:
            await topic_admin.create_partitions(client, name, partitions)
            typer.echo(f"topic {name} has {pluralize(partitions, 'partition')}")

    run(bootstrap, change)


def print_topics(topics: "Sequence[ListedTopic]") -> None:
    if not topics:
        print_line("there are no topics; create one with: kafscale topic create NAME")
        return
    print_table(
        ("topic", "partitions", ""),
        (
            (
                (topic.name or "", "bold"),
                str(topic.partition_count),
                "internal" if topic.internal else "",
            )
            for topic in topics
        ),
    )


def print_descriptions(topics: "Iterable[DescribedTopic]") -> None:
    for index, topic in enumerate(topics):
        if index:
            print_line()
        _print_description(topic)


def _print_description(topic: "DescribedTopic") -> None:
    from kafscale.metadata.topics.config_defs import is_used

    partitions = topic.partitions
    records = pluralize(sum(map(record_count, partitions)), "record")
    suffix = ", internal" if topic.internal else ""
    print_line(
        (topic.name or "", "bold"),
        f": {pluralize(len(partitions), 'partition')}, {records}{suffix}, id {topic.topic_id}",
    )
    for name, value in topic.configs.items():
        note = "" if is_used(name) else " (kept, but not used by Kafscale)"
        print_line((f"{name} ", "dim"), f"{value}{note}", indent=2)
    print_line()
    print_table(
        ("partition", "leader", "leader epoch", "start", "end", "records", "size"),
        (
            (
                str(partition.partition),
                ("none", "red") if partition.leader is None else str(partition.leader),
                str(partition.leader_epoch),
                _format(partition.start_offset),
                _format(partition.end_offset),
                _format(record_count(partition)),
                "-" if partition.size_bytes is None else format_size(partition.size_bytes),
            )
            for partition in partitions
        ),
    )


def record_count(partition: "PartitionOffsets") -> int:
    """The number of offsets between start and end."""
    return (partition.end_offset or 0) - (partition.start_offset or 0)


def _format(value: int | None) -> str:
    return "-" if value is None else str(value)
