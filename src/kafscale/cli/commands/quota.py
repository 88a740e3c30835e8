"""`kafscale quota`: list, set and remove quotas of users, client ids and IP addresses."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to import.

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.cli.connection import BootstrapOption, run
from kafscale.cli.options import parse_pairs
from kafscale.cli.output import Output, OutputOption, print_line, print_result, print_table
from kafscale.errors import KafscaleError

if TYPE_CHECKING:
    from kafscale.admin.security.quotas import EntityQuotas

app = typer.Typer(
    no_args_is_help=True, help="List, set and remove quotas of users, client ids and IP addresses."
)


@dataclass(frozen=True, kw_only=True)
class EntityOptions:
    """The entity of quotas."""

    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="A user.")] = None
    user_default: Annotated[
        bool,
        typer.Option("--user-default", help="The default for users without a quota of their own."),
    ] = False
    client_id: Annotated[
        str | None, typer.Option("--client-id", metavar="NAME", help="A client id.")
    ] = None
    client_id_default: Annotated[
        bool,
        typer.Option(
            "--client-id-default", help="The default for client ids without a quota of their own."
        ),
    ] = False
    ip: Annotated[
        str | None, typer.Option("--ip", metavar="ADDRESS", help="An IP address of clients.")
    ] = None
    ip_default: Annotated[
        bool,
        typer.Option(
            "--ip-default", help="The default for IP addresses without a quota of their own."
        ),
    ] = False

    def entity(self, *, required: bool = True) -> dict[str, str | None]:
        """The parts of the entity by type; None stands for the default."""
        entity: dict[str, str | None] = {}
        for kind, name, is_default in (
            ("user", self.user, self.user_default),
            ("client-id", self.client_id, self.client_id_default),
            ("ip", self.ip, self.ip_default),
        ):
            if name is not None and is_default:
                raise typer.BadParameter(f"--{kind} and --{kind}-default exclude each other")
            if name is not None or is_default:
                entity[kind] = name
        if "ip" in entity and len(entity) > 1:
            raise typer.BadParameter("--ip cannot be combined with --user or --client-id")
        if required and not entity:
            raise typer.BadParameter("name an entity: --user, --client-id, both, or --ip")
        return entity


@app.command("list")
def list_quotas(
    *, options: EntityOptions, output: OutputOption = Output.TABLE, bootstrap: BootstrapOption = ""
) -> None:
    """List all quotas, or those of a user, client id or IP address.

    \b
    kafscale quota list
    kafscale quota list --user alice -o json
    """
    from kafscale.admin.security import quotas as quota_admin

    entity = options.entity(required=False)
    quotas = run(bootstrap, lambda client: quota_admin.describe(client, entity))
    print_result(quotas, output, print_quotas)


@app.command("set")
def set_quotas(
    limits: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE...", help="Quotas and their limits per second."),
    ],
    *,
    options: EntityOptions,
    bootstrap: BootstrapOption = "",
) -> None:
    """Set quotas. They hold for each broker; of several that match, the most specific applies.

    producer_byte_rate and consumer_byte_rate take a size per second. request_rate,
    controller_mutation_rate (partitions created or deleted) and connection_creation_rate (of users
    and IP addresses) take a number per second. request_percentage takes a percentage of the
    processing time of a broker.

    \b
    kafscale quota set --user alice producer_byte_rate=1Mi consumer_byte_rate=4Mi
    kafscale quota set --user-default --client-id loader request_rate=50
    kafscale quota set --ip-default connection_creation_rate=20
    """
    from kafscale.admin.security import quotas as quota_admin

    entity = options.entity()
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
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help="The quotas to remove; by default all."),
    ] = None,
    *,
    options: EntityOptions,
    bootstrap: BootstrapOption = "",
) -> None:
    """Remove the named quotas, or all quotas, of a user, client id or IP address.

    \b
    kafscale quota remove --user alice producer_byte_rate
    kafscale quota remove --ip 10.0.0.7
    """
    from kafscale.admin.security import quotas as quota_admin

    entity = options.entity()
    removed = run(bootstrap, lambda client: quota_admin.remove(client, entity, keys or ()))
    if not removed:
        raise KafscaleError(f"{quota_admin.format_entity(entity)} has no such quota")
    for key in removed:
        typer.echo(f"removed {key} of {quota_admin.format_entity(entity)}")


def print_quotas(quotas: "Sequence[EntityQuotas]") -> None:
    from kafscale.admin.security.quotas import format_limit
    from kafscale.security.quota.entities import TYPES

    if not quotas:
        print_line("there are no quotas; set one with: kafscale quota set --user NAME KEY=VALUE")
        return
    print_table(
        (*TYPES, "quota", "limit"),
        (
            (
                *(_entity_name(quota.entity, entity_type) for entity_type in TYPES),
                (key, "bold"),
                format_limit(key, value),
            )
            for quota in quotas
            for key, value in quota.limits.items()
        ),
    )


def _entity_name(entity: dict[str, str | None], entity_type: str) -> str:
    from kafscale.admin.security.quotas import DEFAULT_ENTITY

    if entity_type not in entity:
        return ""
    return entity[entity_type] or DEFAULT_ENTITY
