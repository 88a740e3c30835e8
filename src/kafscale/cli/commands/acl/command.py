"""`kafscale acl`: list, add and remove the rules about who may do what."""

# ruff: noqa: B006, D301, PLC0415 - typer makes lists of its own; \b keeps the lines of examples
# apart; messages are slow to load.

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from kafscale.cli.commands.acl.options import (
    AllowHostOption,
    AllowPrincipalOption,
    ClusterOption,
    ConsumerOption,
    DenyHostOption,
    DenyPrincipalOption,
    GroupOption,
    OperationOption,
    Pattern,
    PatternOption,
    PrincipalOption,
    ProducerOption,
    Role,
    RoleOption,
    SoughtPattern,
    SoughtPatternOption,
    TopicOption,
    TransactionalIdOption,
    UserOption,
)
from kafscale.cli.confirm import YesOption
from kafscale.cli.connection.client_run import run
from kafscale.cli.connection.kafka import BootstrapOption
from kafscale.cli.output import Output, OutputOption, print_data
from kafscale.text.formatting import pluralize

if TYPE_CHECKING:
    from kafscale.cli.commands.acl.rules import Party
    from kafscale.metadata.access.model import Operation, PatternType

app = typer.Typer(
    no_args_is_help=True, help="List, add and remove the rules about who may do what."
)


@app.command("list")
def list_rules(
    *,
    topic: TopicOption = [],
    group: GroupOption = [],
    cluster: ClusterOption = False,
    transactional_id: TransactionalIdOption = [],
    user: UserOption = [],
    pattern: SoughtPatternOption = SoughtPattern.MATCH,
    principal: PrincipalOption = [],
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """List rules: all, those that bear on a resource, or those about somebody.

    \b
    kafscale acl list
    kafscale acl list --topic orders
    kafscale acl list --principal User:alice -o json
    """
    from kafscale.admin.security import acls as acl_admin
    from kafscale.cli.commands.acl import tables
    from kafscale.cli.commands.acl.rules import Wanted, parties
    from kafscale.metadata.access.model import Permission

    with _usage():
        wanted = Wanted(
            topics=topic,
            groups=group,
            transactional_ids=transactional_id,
            users=user,
            cluster=cluster,
            pattern=_read(pattern),
            parties=parties(Permission.ANY, principal),
        )
    rules = run(bootstrap, lambda client: acl_admin.find(client, wanted.filters()))
    if output is Output.TABLE:
        tables.print_rules(rules)
    else:
        print_data([acl_admin.acl_info(rule) for rule in rules], output)


@app.command()
def add(
    *,
    topic: TopicOption = [],
    group: GroupOption = [],
    cluster: ClusterOption = False,
    transactional_id: TransactionalIdOption = [],
    user: UserOption = [],
    pattern: PatternOption = Pattern.LITERAL,
    allow_principal: AllowPrincipalOption = [],
    deny_principal: DenyPrincipalOption = [],
    allow_host: AllowHostOption = [],
    deny_host: DenyHostOption = [],
    operation: OperationOption = [],
    role: RoleOption = None,
    producer: ProducerOption = False,
    consumer: ConsumerOption = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Add rules: for everybody, every resource and every operation named.

    Without operations, all of them are meant. A role is one rule: an admin may
    create, delete, alter and describe, a producer may write and describe, a
    consumer may read and describe.

    \b
    kafscale acl add --allow-principal User:alice --producer --topic orders
    kafscale acl add --allow-principal User:bob --consumer --topic orders \\
      --group billing
    kafscale acl add --allow-principal User:ops --role admin --topic '*' --cluster
    kafscale acl add --deny-principal User:eve --operation Read --topic hr- \\
      --resource-pattern-type prefixed
    """
    from kafscale.admin.security import acls as acl_admin
    from kafscale.cli.commands.acl import tables as acl_tables
    from kafscale.cli.commands.acl.rules import Wanted

    with _usage():
        rules = Wanted(
            topics=topic,
            groups=group,
            transactional_ids=transactional_id,
            users=user,
            cluster=cluster,
            pattern=_read(pattern),
            parties=_parties(allow_principal, allow_host, deny_principal, deny_host),
            operations=_operations(operation, role),
            producer=producer,
            consumer=consumer,
        ).rules()
    run(bootstrap, lambda client: acl_admin.add(client, rules))
    acl_tables.print_rules(rules)
    typer.echo(f"\nadded {pluralize(len(rules), 'rule')}", err=True)


@app.command()
def remove(
    *,
    topic: TopicOption = [],
    group: GroupOption = [],
    cluster: ClusterOption = False,
    transactional_id: TransactionalIdOption = [],
    user: UserOption = [],
    pattern: SoughtPatternOption = SoughtPattern.LITERAL,
    allow_principal: AllowPrincipalOption = [],
    deny_principal: DenyPrincipalOption = [],
    allow_host: AllowHostOption = [],
    deny_host: DenyHostOption = [],
    operation: OperationOption = [],
    role: RoleOption = None,
    producer: ProducerOption = False,
    consumer: ConsumerOption = False,
    yes: YesOption = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Remove rules; what is not named may be anything. On a terminal it asks.

    \b
    kafscale acl remove --topic orders
    kafscale acl remove --allow-principal User:alice --yes
    kafscale acl remove --allow-principal User:bob --operation Read --topic orders
    """
    from kafscale.admin.security import acls as acl_admin
    from kafscale.cli.commands.acl import tables as acl_tables
    from kafscale.cli.commands.acl.rules import Wanted

    with _usage():
        filters = Wanted(
            topics=topic,
            groups=group,
            transactional_ids=transactional_id,
            users=user,
            cluster=cluster,
            pattern=_read(pattern),
            parties=_parties(allow_principal, allow_host, deny_principal, deny_host),
            operations=_operations(operation, role),
            producer=producer,
            consumer=consumer,
        ).filters()
    if filters == Wanted().filters():
        raise typer.BadParameter("say which rules: by what they are about, or by whom")
    rules = run(bootstrap, lambda client: acl_admin.find(client, filters))
    acl_tables.print_rules(rules)
    if not rules:
        return
    if not yes and sys.stdin.isatty():
        typer.confirm(f"remove {pluralize(len(rules), 'rule')}?", abort=True, err=True)
    run(bootstrap, lambda client: acl_admin.remove(client, rules))
    typer.echo(f"\nremoved {pluralize(len(rules), 'rule')}", err=True)


@contextmanager
def _usage() -> Iterator[None]:
    """What the options cannot mean is wrong usage."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _read(pattern: Pattern | SoughtPattern) -> "PatternType":
    from kafscale.metadata.access.model import PatternType

    return PatternType[pattern.name]


def _parties(
    allowed: Sequence[str],
    allow_hosts: Sequence[str],
    denied: Sequence[str],
    deny_hosts: Sequence[str],
) -> "list[Party]":
    from kafscale.cli.commands.acl.rules import parties
    from kafscale.metadata.access.model import Permission

    return [
        *parties(Permission.ALLOW, allowed, allow_hosts),
        *parties(Permission.DENY, denied, deny_hosts),
    ]


def _operations(names: Sequence[str], role: Role | None) -> "list[Operation]":
    from kafscale.admin.security.acls import parse_operation
    from kafscale.metadata.access.model import Operation

    if role is None:
        return [parse_operation(name) for name in names]
    if names:
        raise ValueError("--role stands for operations; leave out --operation")
    return [Operation[role.name]]
