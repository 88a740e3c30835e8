"""`kafscale transaction`: list, describe and abort transactions, and find hanging ones."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to import.

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.aio.clock import clock
from kafscale.cli.connection import BootstrapOption, run
from kafscale.cli.options import YesOption, parse_option
from kafscale.cli.output import Output, OutputOption, print_result
from kafscale.text.units import parse_duration

if TYPE_CHECKING:
    from kafscale.admin.transactions.hanging import HangingTransaction
    from kafscale.client.client import Client

app = typer.Typer(
    no_args_is_help=True, help="List, describe and abort transactions, and find hanging ones."
)


class State(StrEnum):
    """Transaction states, by their Kafka names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


StateOption = Annotated[
    list[State],
    typer.Option(
        "--state", case_sensitive=False, help="Only transactions in this state; may be repeated."
    ),
]
ProducerIdOption = Annotated[
    list[int],
    typer.Option(
        "--producer-id", min=0, metavar="N", help="Only of this producer; may be repeated."
    ),
]
OlderThanOption = Annotated[
    str,
    typer.Option(
        "--older-than", metavar="DURATION", help="Only open for longer than this, such as 5m."
    ),
]
PatternOption = Annotated[
    str,
    typer.Option(
        "--pattern", metavar="REGEX", help="Only with transactional ids that match all of this."
    ),
]
TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]
PartitionsOption = Annotated[
    list[int],
    typer.Option("--partition", "-p", min=0, metavar="N", help="Only this one; may be repeated."),
]


@app.command("list")
def list_transactions(
    *,
    state: StateOption = [],  # noqa: B006 - typer makes a list of its own.
    older_than: OlderThanOption = "",
    producer_id: ProducerIdOption = [],  # noqa: B006
    pattern: PatternOption = "",
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """List the transactional ids, each with the state of its open or last transaction.

    \b
    kafscale transaction list
    kafscale transaction list --state ongoing --older-than 5m
    kafscale transaction list -o json | jq -r '.[].transactionalId'
    """
    from kafscale.admin.transactions import transactions
    from kafscale.cli.commands.transaction import tables

    chosen = transactions.TransactionFilter(
        states=[each.value for each in state],
        producer_ids=producer_id,
        open_longer_than_ms=parse_option("--older-than", older_than, parse_duration)
        if older_than
        else None,
        pattern=pattern or None,
    )
    listed = run(bootstrap, lambda client: transactions.list_all(client, chosen))
    is_filtered = chosen != transactions.EVERYTHING
    print_result(
        listed, output, lambda each: tables.print_transactions(each, is_filtered=is_filtered)
    )


@app.command()
def describe(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Transactional ids.")],
    *,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """Show the producer, the coordinator and the partitions of transactions.

    \b
    kafscale transaction describe billing-1
    kafscale transaction describe billing-1 -o json | jq '.[].topics'
    """
    from kafscale.admin.transactions import transactions
    from kafscale.cli.commands.transaction import tables

    described = run(bootstrap, lambda client: transactions.describe(client, ids))
    print_result(described, output, lambda each: tables.print_descriptions(each, clock()))


@app.command()
def abort(
    name: Annotated[
        str,
        typer.Argument(
            metavar="ID|TOPIC", help="Transactional id; or, with --partition, name of the topic."
        ),
    ],
    *,
    partition: Annotated[
        int | None,
        typer.Option("--partition", "-p", min=0, metavar="N", help="Partition that is held back."),
    ] = None,
    start_offset: Annotated[
        int | None,
        typer.Option(
            "--start-offset", min=0, metavar="N", help="First offset of the hanging transaction."
        ),
    ] = None,
    yes: YesOption = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Abort a transaction. On a terminal, the command asks for confirmation.

    By its transactional id, the transaction is aborted in all partitions, and its
    producer is fenced. A hanging transaction, which no coordinator knows, is
    aborted in one partition, where find-hanging has shown it.

    \b
    kafscale transaction abort billing-1
    kafscale transaction abort orders --partition 3 --start-offset 1042
    """
    from kafscale.admin.transactions import producers, transactions
    from kafscale.cli.commands.transaction import tables
    from kafscale.client.group_offsets import format_topic_partition

    if (partition is None) != (start_offset is None):
        raise typer.BadParameter("give both --partition and --start-offset, or neither")
    if partition is None or start_offset is None:
        _confirm(f"abort the transaction of {name} and fence its producer?", yes=yes)
        before = run(bootstrap, lambda client: transactions.abort(client, name))
        typer.echo(tables.describe_abort(before))
        return
    place = f"{format_topic_partition((name, partition))}, offset {start_offset}"
    _confirm(f"abort the transaction at {place}?", yes=yes)
    producer = run(
        bootstrap, lambda client: producers.abort_at(client, name, partition, start_offset)
    )
    typer.echo(f"aborted the transaction of producer {producer.producer_id} at {place}")


@app.command("find-hanging")
def find_hanging(
    topic: Annotated[
        list[str], typer.Option("--topic", "-t", help="Only in this topic; may be repeated.")
    ] = [],  # noqa: B006
    *,
    max_transaction_timeout: Annotated[
        str,
        typer.Option(
            "--max-transaction-timeout",
            metavar="DURATION",
            help="Only of producers that have written nothing for this long; by default"
            " transaction.max.timeout.ms of the cluster, at least 15m.",
        ),
    ] = "",
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """Find transactions that are open in a partition, but that no coordinator will end.

    They hold back read_committed consumers of the partition until they are aborted.

    \b
    kafscale transaction find-hanging
    kafscale transaction find-hanging --topic orders --max-transaction-timeout 1h
    """
    from kafscale.admin.transactions import hanging
    from kafscale.cli.commands.transaction import tables

    idle_ms = (
        parse_option("--max-transaction-timeout", max_transaction_timeout, parse_duration)
        if max_transaction_timeout
        else None
    )

    async def find(client: "Client") -> "list[HangingTransaction]":
        return await hanging.find(client, topic, now_ms=clock(), idle_ms=idle_ms)

    print_result(run(bootstrap, find), output, lambda each: tables.print_hanging(each, clock()))


@app.command("producers")
def show_producers(
    topic: TopicArgument,
    *,
    partition: PartitionsOption = [],  # noqa: B006
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """Show the idempotent and transactional producers that have written to a topic.

    \b
    kafscale transaction producers orders
    kafscale transaction producers orders --partition 3 -o json
    """
    from kafscale.admin.transactions import producers
    from kafscale.cli.commands.transaction import tables

    described = run(bootstrap, lambda client: producers.describe(client, topic, partition))
    print_result(described, output, lambda each: tables.print_producers(each, clock()))


def _confirm(question: str, *, yes: bool) -> None:
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True, err=True)
