"""`kafscale cluster`: show the brokers, drain and flush them, and rebalance partitions."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; gRPC is slow to import.

from typing import Annotated

import typer

from kafscale.cli.connection import ControlOption, run_control
from kafscale.cli.output import Output, OutputOption, print_data, print_result
from kafscale.errors import KafscaleError
from kafscale.text.formatting import pluralize

app = typer.Typer(
    no_args_is_help=True, help="Show, drain, flush and rebalance the brokers of a cluster."
)


@app.command()
def status(
    partitions: Annotated[
        bool, typer.Option("--partitions", "-p", help="Also show all partitions and their brokers.")
    ] = False,
    output: OutputOption = Output.TABLE,
    control: ControlOption = "",
) -> None:
    """Show the state and load of all brokers. An asterisk marks the controller.

    \b
    kafscale cluster status
    kafscale cluster status --partitions --control broker-0:9095
    kafscale cluster status -o json | jq '.brokers[] | {id, state}'
    """
    from kafscale.admin.cluster import operations as cluster_admin
    from kafscale.cli.commands.cluster import tables

    cluster_status = run_control(
        control, lambda cluster: cluster_admin.status(cluster, with_partitions=partitions)
    )
    print_result(cluster_status, output, tables.print_status)


@app.command()
def drain(
    broker: Annotated[int, typer.Argument(metavar="BROKER", min=0, help="Id of the broker.")],
    deadline: Annotated[
        int, typer.Option("--deadline", min=1, max=3600, help="Time limit in seconds.")
    ] = 60,
    reason: Annotated[
        str, typer.Option("--reason", help="Reason, for the log of the broker.")
    ] = "",
    output: OutputOption = Output.TABLE,
    control: ControlOption = "",
) -> None:
    """Transfer all partitions and shards of a broker to other brokers, as before a restart.

    The controller assigns nothing to a draining broker. The command exits with 1 if partitions
    are left at the deadline; the broker continues to transfer them.

    \b
    kafscale cluster drain 2
    kafscale cluster drain 2 --deadline 300 --reason "new disk"
    """
    from kafscale.admin.cluster import operations as cluster_admin
    from kafscale.cli.commands.cluster import tables as cluster_tables
    from kafscale.cli.output import progress_bar

    with progress_bar(f"draining broker {broker}") as progress:
        result = run_control(
            control,
            lambda cluster: cluster_admin.drain(
                cluster, str(broker), reason=reason, deadline_seconds=deadline, progress=progress
            ),
        )
    if output is not Output.TABLE:
        print_data(result, output)
    else:
        typer.echo(f"broker {broker} transferred {pluralize(len(result.drained), 'partition')}")
    if pending := result.pending:
        raise KafscaleError(
            f"broker {broker} still owns {pluralize(len(pending), 'partition')} and continues:"
            f" {cluster_tables.format_names(pending)}"
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
    """Roll all records into segments, and wait until they are in the object store.

    \b
    kafscale cluster flush --topic orders
    kafscale cluster flush --topic orders --partition 0 --partition 3
    kafscale cluster flush --all
    """
    from kafscale.admin.cluster import operations as cluster_admin
    from kafscale.cli.commands.cluster import tables as cluster_tables

    if bool(topic) == everything:
        raise typer.BadParameter("give either --topic or --all")
    if partition and not topic:
        raise typer.BadParameter("--partition needs --topic")
    flushed = run_control(control, lambda cluster: cluster_admin.flush(cluster, topic, partition))
    print_result(flushed, output, cluster_tables.print_flushed)


@app.command()
def rebalance(
    wait: Annotated[
        int, typer.Option("--wait", min=0, max=86_400, help="Time limit in seconds.")
    ] = 300,
    output: OutputOption = Output.TABLE,
    control: ControlOption = "",
) -> None:
    """Rebalance partitions now, and show the moves until they are complete.

    \b
    kafscale cluster rebalance
    kafscale cluster rebalance --wait 0
    """
    from kafscale.admin.cluster import operations as cluster_admin
    from kafscale.cli.commands.cluster import tables as cluster_tables
    from kafscale.cli.output import progress_bar

    with progress_bar("moving partitions") as progress:
        moves = run_control(
            control,
            lambda cluster: cluster_admin.rebalance(cluster, seconds_max=wait, progress=progress),
        )
    print_result(moves, output, cluster_tables.print_moves)
