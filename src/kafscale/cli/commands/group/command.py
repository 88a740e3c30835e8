"""`kafscale group`: list, describe, reset and delete consumer groups."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to import.

from enum import StrEnum
from typing import Annotated

import typer

from kafscale.cli.commands.group.reset import GroupArgument, reset_offsets
from kafscale.cli.connection import BootstrapOption, run
from kafscale.cli.options import YesOption, confirm_deletion, report_deletions
from kafscale.cli.output import Output, OutputOption, print_data, print_result

app = typer.Typer(no_args_is_help=True, help="List, describe, reset and delete consumer groups.")


class State(StrEnum):
    """Group states, by their Kafka names."""

    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    EMPTY = "Empty"
    DEAD = "Dead"


class Type(StrEnum):
    """Group types, by their Kafka names."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


@app.command("list")
def list_groups(
    state: Annotated[
        list[State],
        typer.Option(
            "--state", case_sensitive=False, help="Only groups in this state; may be repeated."
        ),
    ] = [],  # noqa: B006 - typer makes a list of its own.
    kind: Annotated[
        list[Type],
        typer.Option(
            "--type",
            case_sensitive=False,
            metavar="TYPE",
            help="Only groups of this type, classic or consumer; may be repeated.",
        ),
    ] = [],  # noqa: B006
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """List the consumer groups.

    \b
    kafscale group list
    kafscale group list --state empty
    kafscale group list -o json | jq -r '.[].group'
    """
    from kafscale.admin.groups import groups as group_admin
    from kafscale.cli.commands.group import tables

    groups = run(bootstrap, lambda client: group_admin.list_all(client, state, kind))
    if output is Output.TABLE:
        tables.print_list(groups, is_filtered=bool(state or kind))
    else:
        print_data(groups, output)


@app.command()
def describe(
    groups: Annotated[
        list[str] | None,
        typer.Argument(metavar="[GROUP]...", help="Names of the groups; by default all."),
    ] = None,
    *,
    offsets: Annotated[
        bool,
        typer.Option(
            "--offsets", help="Show committed offsets, lag and members of partitions; the default."
        ),
    ] = False,
    members: Annotated[
        bool, typer.Option("--members", help="Show the members and their assignments.")
    ] = False,
    state: Annotated[
        bool, typer.Option("--state", help="Show the state, assignor and coordinator.")
    ] = False,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """Show the committed offsets, lag, members and state of groups.

    \b
    kafscale group describe billing
    kafscale group describe billing --members --state
    kafscale group describe -o json | jq '.[] | {group, state}'
    """
    from kafscale.admin.groups import groups as group_admin
    from kafscale.cli.commands.group import tables as group_tables
    from kafscale.cli.commands.group.tables import Section

    described = run(bootstrap, lambda client: group_admin.describe(client, groups or ()))
    if output is not Output.TABLE:
        print_data(described, output)
        return
    flags = {Section.OFFSETS: offsets, Section.MEMBERS: members, Section.STATE: state}
    sections = [section for section, is_set in flags.items() if is_set]
    group_tables.print_descriptions(described, sections or [Section.OFFSETS])


@app.command("offsets")
def show_offsets(
    group: GroupArgument, output: OutputOption = Output.TABLE, bootstrap: BootstrapOption = ""
) -> None:
    """Show the committed offsets of a group, with their metadata and lag.

    \b
    kafscale group offsets billing
    kafscale group offsets billing -o json | jq 'map(.lag) | add'
    """
    from kafscale.admin.groups import groups as group_admin
    from kafscale.cli.commands.group import tables as group_tables

    committed = run(bootstrap, lambda client: group_admin.offsets(client, group))
    print_result(committed, output, group_tables.print_offsets)


app.command("reset-offsets")(reset_offsets)


@app.command()
def delete(
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", help="Names of the groups.")],
    yes: YesOption = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Ignore groups that do not exist.")
    ] = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Delete groups without members. On a terminal, the command asks for confirmation.

    \b
    kafscale group delete billing
    kafscale group delete billing audit --yes
    """
    from kafscale.admin.groups import groups as group_admin

    confirm_deletion(groups, "offsets", yes=yes)
    deleted, problems = run(
        bootstrap, lambda client: group_admin.delete(client, groups, missing_ok=if_exists)
    )
    report_deletions("group", deleted, problems)
