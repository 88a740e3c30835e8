"""`kafscale cluster`: look at the brokers of a cluster, and direct them."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; gRPC is slow to load.

from typing import Annotated

import typer

from kafscale.cli.connection.control_plane import ControlOption
from kafscale.cli.output import Output, OutputOption, print_data
from kafscale.errors import KafscaleError
from kafscale.text.formatting import pluralize

app = typer.Typer(no_args_is_help=True, help="Look at the brokers of a cluster, and direct them.")


@app.command()
def status(
    partitions: Annotated[
        bool, typer.Option("--partitions", "-p", help="Also show who serves which partition.")
    ] = False,
    output: OutputOption = Output.TABLE,
    control: ControlOption = "",
) -> None:
    """Show all brokers, how they do and how much each of them owns. A star marks the controller.

    \b
    kafscale cluster status
    kafscale cluster status --partitions --control broker-0:9093
    kafscale cluster status -o json | jq '.brokers[] | {id, state}'
    """
    from kafscale.admin.cluster import operations as cluster_admin
    from kafscale.cli.commands.cluster import tables
    from kafscale.cli.connection import cluster_client

    found = cluster_client.run(
        control, lambda cluster: cluster_admin.status(cluster, with_partitions=partitions)
    )
    if output is Output.TABLE:
        tables.print_status(found)
    else:
        print_data(found, output)


@app.command()
def drain(
    broker: Annotated[int, typer.Argument(metavar="BROKER", min=0, help="The broker's id.")],
    deadline: Annotated[
        int, typer.Option("--deadline", min=1, max=3600, help="How long to wait, in seconds.")
    ] = 60,
    reason: Annotated[str, typer.Option("--reason", help="For the broker's log.")] = "",
    output: OutputOption = Output.TABLE,
    control: ControlOption = "",
) -> None:
    """Have a broker hand over all that it owns, as before a restart; it gets nothing any more.

    It exits with 1 if something is left at the deadline; the broker goes on with it.

    \b
    kafscale cluster drain 2
    kafscale cluster drain 2 --deadline 300 --reason "new disk"
    """
    from kafscale.admin.cluster import operations as cluster_admin
    from kafscale.cli.commands.cluster import tables as cluster_tables
    from kafscale.cli.connection import cluster_client
    from kafscale.cli.progress import progress_bar

    with progress_bar(f"draining broker {broker}") as progress:
        result = cluster_client.run(
            control,
            lambda cluster: cluster_admin.drain(
                cluster, str(broker), reason=reason, deadline_seconds=deadline, progress=progress
            ),
        )
    if output is not Output.TABLE:
        print_data(result, output)
    else:
        typer.echo(f"broker {broker} has handed over {pluralize(len(result.drained), 'partition')}")
    if pending := result.pending:
        raise KafscaleError(
            f"broker {broker} still has {pluralize(len(pending), 'partition')}, and goes on:"
            f" {cluster_tables.names(pending)}"
        )


@app.command()
def flush(
    topic: Annotated[str, typer.Option("--topic", "-t", help="Only this topic.")] = "",
    partition: Annotated[
        list[int],
        typer.Option("--partition", "-p", min=0, help="Only this partition; may be repeated."),
    ] = [],  # noqa: B006 - typer makes a list of its own.
    everything: Annotated[bool, typer.Option("--all", help="All topics.")] = False,
    output: OutputOption = Output.TABLE,
    control: ControlOption = "",
) -> None:
    """Make segments of what was written so far, and return when they are in the object store.

    \b
    kafscale cluster flush --topic orders
    kafscale cluster flush --topic orders --partition 0 --partition 3
    kafscale cluster flush --all
    """
    from kafscale.admin.cluster import operations as cluster_admin
    from kafscale.cli.commands.cluster import tables as cluster_tables
    from kafscale.cli.connection import cluster_client

    if bool(topic) == everything:
        raise typer.BadParameter("name a topic with --topic, or say --all")
    if partition and not topic:
        raise typer.BadParameter("a partition is one of a topic: name it with --topic")
    flushed = cluster_client.run(
        control, lambda cluster: cluster_admin.flush(cluster, topic, partition)
    )
    if output is Output.TABLE:
        cluster_tables.print_flushed(flushed)
    else:
        print_data(flushed, output)


@app.command()
def rebalance(
    wait: Annotated[
        int, typer.Option("--wait", min=0, max=86_400, help="How long to wait, in seconds.")
    ] = 300,
    output: OutputOption = Output.TABLE,
    control: ControlOption = "",
) -> None:
    """Have the controller plan now, and show what moves until everything is where it belongs.

    \b
    kafscale cluster rebalance
    kafscale cluster rebalance --wait 0
    """
    from kafscale.admin.cluster import operations as cluster_admin
    from kafscale.cli.commands.cluster import tables as cluster_tables
    from kafscale.cli.connection import cluster_client
    from kafscale.cli.progress import progress_bar

    with progress_bar("moving partitions") as progress:
        moves = cluster_client.run(
            control,
            lambda cluster: cluster_admin.rebalance(cluster, seconds_max=wait, progress=progress),
        )
    if output is Output.TABLE:
        cluster_tables.print_moves(moves)
    else:
        print_data(moves, output)
