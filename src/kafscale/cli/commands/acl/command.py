"""`kafscale acl`: list, add and remove ACLs."""

# ruff: noqa: B006, D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# messages are slow to import.

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import typer

from kafscale.cli.commands.acl.options import (
    FilterPattern,
    FilterPatternOption,
    GrantOptions,
    PatternOption,
    PrincipalOption,
    ResourceOptions,
)
from kafscale.cli.connection import BootstrapOption, run
from kafscale.cli.options import YesOption
from kafscale.cli.output import Output, OutputOption, Part, print_data, print_line, print_table
from kafscale.text.formatting import pluralize

if TYPE_CHECKING:
    from kafscale.cli.commands.acl.request import AclRequest
    from kafscale.metadata.access.model import Acl, Permission

app = typer.Typer(no_args_is_help=True, help="List, add and remove ACLs.")


@app.command("list")
def list_acls(
    *,
    resources: ResourceOptions,
    pattern: FilterPatternOption = "match",
    principal: PrincipalOption = [],
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """List all ACLs, or those of resources or principals.

    \b
    kafscale acl list
    kafscale acl list --topic orders
    kafscale acl list --principal User:alice -o json
    """
    from kafscale.admin.security import acls as acl_admin
    from kafscale.cli.commands.acl.request import principal_entries
    from kafscale.metadata.access.model import Permission

    with _usage_errors():
        entries = principal_entries(Permission.ANY, principal)
        request = replace(_request(resources, pattern, GrantOptions()), entries=entries)
    acls = run(bootstrap, lambda client: acl_admin.find(client, request.to_filters()))
    if output is Output.TABLE:
        print_acls(acls)
    else:
        print_data([acl_admin.acl_info(acl) for acl in acls], output)


@app.command()
def add(
    *,
    resources: ResourceOptions,
    pattern: PatternOption = "literal",
    grants: GrantOptions,
    bootstrap: BootstrapOption = "",
) -> None:
    """Add ACLs: one for each combination of principal, resource and operation.

    Without --operation and --role, the operation is All. A role is one ACL for
    several operations: an admin may create, delete, alter and describe, a
    producer may write and describe, a consumer may read and describe.

    \b
    kafscale acl add --allow-principal User:alice --producer --topic orders
    kafscale acl add --allow-principal User:bob --consumer --topic orders \\
      --group billing
    kafscale acl add --allow-principal User:ops --role admin --topic '*' --cluster
    kafscale acl add --deny-principal User:eve --operation Read --topic hr- \\
      --resource-pattern-type prefixed
    """
    from kafscale.admin.security import acls as acl_admin

    with _usage_errors():
        acls = _request(resources, pattern, grants).to_acls()
    run(bootstrap, lambda client: acl_admin.add(client, acls))
    print_acls(acls)
    typer.echo(f"\nadded {pluralize(len(acls), 'ACL')}", err=True)


@app.command()
def remove(
    *,
    resources: ResourceOptions,
    pattern: FilterPatternOption = "literal",
    grants: GrantOptions,
    yes: YesOption = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Remove all ACLs that match the options. On a terminal, the command asks for confirmation.

    \b
    kafscale acl remove --topic orders
    kafscale acl remove --allow-principal User:alice --yes
    kafscale acl remove --allow-principal User:bob --operation Read --topic orders
    """
    from kafscale.admin.security import acls as acl_admin
    from kafscale.cli.commands.acl.request import AclRequest

    with _usage_errors():
        filters = _request(resources, pattern, grants).to_filters()
    if filters == AclRequest().to_filters():
        raise typer.BadParameter("name the ACLs to remove, by resource or by principal")
    acls = run(bootstrap, lambda client: acl_admin.find(client, filters))
    print_acls(acls)
    if not acls:
        return
    if not yes and sys.stdin.isatty():
        typer.confirm(f"remove {pluralize(len(acls), 'ACL')}?", abort=True, err=True)
    run(bootstrap, lambda client: acl_admin.remove(client, acls))
    typer.echo(f"\nremoved {pluralize(len(acls), 'ACL')}", err=True)


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Report a `ValueError` as wrong usage."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _request(
    resources: ResourceOptions, pattern: FilterPattern, grants: GrantOptions
) -> "AclRequest":
    from kafscale.admin.security.acls import parse_operation
    from kafscale.cli.commands.acl.request import AclRequest, principal_entries
    from kafscale.metadata.access.model import Operation, PatternType, Permission

    if grants.role is None:
        operations = [parse_operation(name) for name in grants.operation]
    elif grants.operation:
        raise ValueError("--role replaces operations; leave out --operation")
    else:
        operations = [Operation[grants.role.upper()]]
    return AclRequest(
        topics=resources.topic,
        groups=resources.group,
        transactional_ids=resources.transactional_id,
        users=resources.user,
        cluster=resources.cluster,
        pattern=PatternType[pattern.upper()],
        entries=[
            *principal_entries(Permission.ALLOW, grants.allow_principal, grants.allow_host),
            *principal_entries(Permission.DENY, grants.deny_principal, grants.deny_host),
        ],
        operations=operations,
        producer=grants.producer,
        consumer=grants.consumer,
    )


def print_acls(acls: "Sequence[Acl]") -> None:
    if not acls:
        print_line("no ACLs; add one with: kafscale acl add --allow-principal User:NAME ...")
        return
    print_table(
        ("resource", "pattern", "principal", "permission", "operations", "host"), _rows(acls)
    )


def _rows(acls: "Sequence[Acl]") -> "Iterator[tuple[Part, ...]]":
    """One row for each resource, principal, permission and host, with all operations."""
    from kafscale.admin.security.acls import display_name
    from kafscale.metadata.access.model import ANY_HOST, Permission

    for (resource, pattern), of_resource in groupby(sorted(acls), key=_resource_key):
        first: tuple[Part, ...] = ((resource, "bold"), pattern)
        by_principal = sorted(of_resource, key=_principal_key)
        for (principal, permission, host), same in groupby(by_principal, key=_principal_key):
            is_allowed = permission is Permission.ALLOW
            yield (
                *first,
                principal,
                ("allow", "green") if is_allowed else ("deny", "red"),
                ", ".join(display_name(acl.operation) for acl in same),
                "any" if host == ANY_HOST else host,
            )
            first = "", ""


def _resource_key(acl: "Acl") -> tuple[str, str]:
    from kafscale.admin.security.acls import display_name
    from kafscale.metadata.access.model import PatternType

    pattern = "prefix" if acl.pattern_type is PatternType.PREFIXED else "name"
    return f"{display_name(acl.resource_type)} {acl.resource_name}", pattern


def _principal_key(acl: "Acl") -> "tuple[str, Permission, str]":
    return acl.principal, acl.permission, acl.host
