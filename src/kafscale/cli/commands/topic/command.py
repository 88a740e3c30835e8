"""`kafscale topic`: create, list, describe, change and delete topics of a running cluster."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to load.

from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.cli.confirm import YesOption, confirm, report
from kafscale.cli.connection.client_run import run
from kafscale.cli.connection.kafka import BootstrapOption
from kafscale.cli.options import parse_pairs
from kafscale.cli.output import Output, OutputOption, print_data
from kafscale.text.formatting import pluralize

if TYPE_CHECKING:
    from kafscale.client.client import Client

app = typer.Typer(
    no_args_is_help=True, help="Create, list, describe, change and delete topics of a cluster."
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The topic.")]
ConfigOption = Annotated[
    list[str],
    typer.Option("--config", metavar="KEY=VALUE", help="A config of the topic; may be repeated."),
]


@app.command()
def create(
    name: NameArgument,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", min=1, help="How many; the broker's default if left out."
        ),
    ] = None,
    config: ConfigOption = [],  # noqa: B006 - typer makes a list of its own.
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Be content if the topic exists.")
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
        typer.echo(f"topic {name} exists already")
    else:
        count = created.partition_count
        # Brokers older than CreateTopics v5 do not tell.
        told = f" with {pluralize(count, 'partition')}" if count > 0 else ""
        typer.echo(f"created topic {name}{told}")


@app.command("list")
def list_topics(
    exclude_internal: Annotated[
        bool, typer.Option("--exclude-internal", help="Leave out the brokers' own topics.")
    ] = False,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """List the topics of the cluster.

    \b
    kafscale topic list
    kafscale topic list -o json | jq -r '.[].name'
    """
    from kafscale.admin.topics import topics as topic_admin
    from kafscale.cli.commands.topic import tables

    topics = run(bootstrap, topic_admin.list_all)
    if exclude_internal:
        topics = [topic for topic in topics if not topic.internal]
    if output is Output.TABLE:
        tables.print_list(topics)
    else:
        print_data(topics, output)


@app.command()
def describe(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="The topics; all by default.")
    ] = None,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """Show partitions, leaders, offsets, sizes, and the configs that are set.

    \b
    kafscale topic describe orders
    kafscale topic describe -o yaml
    """
    from kafscale.admin.topics import topics as topic_admin
    from kafscale.cli.commands.topic import tables as topic_tables

    topics = run(bootstrap, lambda client: topic_admin.describe(client, names or ()))
    if output is Output.TABLE:
        topic_tables.print_descriptions(topics)
    else:
        print_data(topics, output)


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The topics.")],
    yes: YesOption = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Be content if a topic does not exist.")
    ] = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Delete topics with all their records. On a terminal it asks before it does.

    \b
    kafscale topic delete orders
    kafscale topic delete orders payments --yes
    """
    from kafscale.admin.topics import topics as topic_admin

    confirm(names, "records", yes=yes)
    deleted, problems = run(
        bootstrap, lambda client: topic_admin.delete(client, names, missing_ok=if_exists)
    )
    report("topic", deleted, problems)


@app.command()
def alter(
    name: NameArgument,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="How many it shall have in all.")
    ] = None,
    config: ConfigOption = [],  # noqa: B006
    delete_config: Annotated[
        list[str],
        typer.Option(
            "--delete-config", metavar="KEY", help="Back to its default; may be repeated."
        ),
    ] = [],  # noqa: B006
    bootstrap: BootstrapOption = "",
) -> None:
    """Change the configs of a topic, or give it more partitions.

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
