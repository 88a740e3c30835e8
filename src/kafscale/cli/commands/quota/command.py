"""`kafscale quota`: list, set and remove what users, clients and addresses may use at most."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to load.

from typing import Annotated

import typer

from kafscale.cli.connection.client_run import run
from kafscale.cli.connection.kafka import BootstrapOption
from kafscale.cli.options import parse_pairs
from kafscale.cli.output import Output, OutputOption, print_data
from kafscale.errors import KafscaleError

app = typer.Typer(
    no_args_is_help=True,
    help="List, set and remove quotas: what users, clients and addresses may use at most.",
)

UserOption = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="A user, with all their clients.")
]
UserDefaultOption = Annotated[
    bool, typer.Option("--user-default", help="Each user who has no quota of their own.")
]
ClientOption = Annotated[
    str | None, typer.Option("--client-id", metavar="NAME", help="Clients with this id.")
]
ClientDefaultOption = Annotated[
    bool, typer.Option("--client-id-default", help="Each client id that has no quota of its own.")
]
AddressOption = Annotated[
    str | None, typer.Option("--ip", metavar="ADDRESS", help="An address that clients come from.")
]
AddressDefaultOption = Annotated[
    bool, typer.Option("--ip-default", help="Each address that has no quota of its own.")
]


@app.command("list")
def list_quotas(
    *,
    user: UserOption = None,
    user_default: UserDefaultOption = False,
    client_id: ClientOption = None,
    client_id_default: ClientDefaultOption = False,
    ip: AddressOption = None,
    ip_default: AddressDefaultOption = False,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """List quotas: all of them, or those that have to do with somebody.

    \b
    kafscale quota list
    kafscale quota list --user alice -o json
    """
    from kafscale.admin.security import quotas as quota_admin
    from kafscale.cli.commands.quota import tables

    entity = _entity(
        ("user", user, user_default),
        ("client-id", client_id, client_id_default),
        ("ip", ip, ip_default),
    )
    quotas = run(bootstrap, lambda client: quota_admin.describe(client, entity))
    if output is Output.TABLE:
        tables.print_list(quotas)
    else:
        print_data(quotas, output)


@app.command("set")
def set_quotas(
    limits: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE...", help="What is limited, and to how much a second."),
    ],
    *,
    user: UserOption = None,
    user_default: UserDefaultOption = False,
    client_id: ClientOption = None,
    client_id_default: ClientDefaultOption = False,
    ip: AddressOption = None,
    ip_default: AddressDefaultOption = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Set quotas, for each broker by itself; of several that fit, the most specific holds.

    producer_byte_rate and consumer_byte_rate take a size; request_rate, controller_mutation_rate
    (partitions created or deleted) and connection_creation_rate (of users and addresses) a number;
    request_percentage a part of a broker's time, in percent.

    \b
    kafscale quota set --user alice producer_byte_rate=1Mi consumer_byte_rate=4Mi
    kafscale quota set --user-default --client-id loader request_rate=50
    kafscale quota set --ip-default connection_creation_rate=20
    """
    from kafscale.admin.security import quotas as quota_admin

    entity = _entity(
        ("user", user, user_default),
        ("client-id", client_id, client_id_default),
        ("ip", ip, ip_default),
    )
    _demand(entity)
    try:
        changes = {key: quota_admin.parse_limit(key, text) for key, text in parse_pairs(limits)}
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    run(bootstrap, lambda client: quota_admin.alter(client, entity, changes))
    for key, value in changes.items():
        shown = quota_admin.format_limit(key, value)
        typer.echo(f"limited {key} of {quota_admin.format_entity(entity)} to {shown}")


@app.command()
def remove(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY]...", help="What; everything by default.")
    ] = None,
    *,
    user: UserOption = None,
    user_default: UserDefaultOption = False,
    client_id: ClientOption = None,
    client_id_default: ClientDefaultOption = False,
    ip: AddressOption = None,
    ip_default: AddressDefaultOption = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Remove quotas of somebody: those that are named, or all of them.

    \b
    kafscale quota remove --user alice producer_byte_rate
    kafscale quota remove --ip 10.0.0.7
    """
    from kafscale.admin.security import quotas as quota_admin

    entity = _entity(
        ("user", user, user_default),
        ("client-id", client_id, client_id_default),
        ("ip", ip, ip_default),
    )
    _demand(entity)
    removed = run(bootstrap, lambda client: quota_admin.remove(client, entity, keys or ()))
    if not removed:
        raise KafscaleError(f"{quota_admin.format_entity(entity)} has no such quota")
    for key in removed:
        typer.echo(f"removed {key} of {quota_admin.format_entity(entity)}")


def _entity(*options: tuple[str, str | None, bool]) -> dict[str, str | None]:
    """Whom the options name, by the type of each part; None stands for the default."""
    entity: dict[str, str | None] = {}
    for kind, name, is_default in options:
        if name is not None and is_default:
            raise typer.BadParameter(f"--{kind} and --{kind}-default exclude each other")
        if name is not None or is_default:
            entity[kind] = name
    if "ip" in entity and len(entity) > 1:
        raise typer.BadParameter("--ip goes with no user and no client id")
    return entity


def _demand(entity: dict[str, str | None]) -> None:
    if not entity:
        raise typer.BadParameter("say who is meant: --user, --client-id, both, or --ip")
