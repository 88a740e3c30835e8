"""The options of `kafscale acl`, with the names of `kafka-acls`."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

import typer

Pattern = Literal["literal", "prefixed"]
FilterPattern = Literal["literal", "prefixed", "any", "match"]


def _several(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=f"{text}; may be repeated.")


_PATTERN: Final = "--resource-pattern-type"

PatternOption = Annotated[
    Pattern, typer.Option(_PATTERN, help="Whether names are literal or prefixes.")
]
FilterPatternOption = Annotated[
    FilterPattern,
    typer.Option(
        _PATTERN,
        help="Find ACLs with a literal name, a prefix, or any; match: all that apply to the name.",
    ),
]
PrincipalOption = Annotated[
    list[str], _several("--principal", "User:NAME", "Only ACLs of this principal")
]


@dataclass(frozen=True, kw_only=True)
class ResourceOptions:
    """The resources of ACLs."""

    topic: Annotated[list[str], _several("--topic", "TOPIC", "A topic, or '*' for all")] = field(
        default_factory=list
    )
    group: Annotated[list[str], _several("--group", "GROUP", "A group, or '*' for all")] = field(
        default_factory=list
    )
    cluster: Annotated[bool, typer.Option("--cluster", help="The cluster resource.")] = False
    transactional_id: Annotated[
        list[str], _several("--transactional-id", "ID", "A transactional id, or '*' for all")
    ] = field(default_factory=list)
    user: Annotated[
        list[str], _several("--user", "User:NAME", "A user, for ACLs on delegation tokens")
    ] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class GrantOptions:
    """The principals, hosts and operations of ACLs."""

    allow_principal: Annotated[
        list[str],
        _several("--allow-principal", "User:NAME", "Principal to allow; User:* is every user"),
    ] = field(default_factory=list)
    deny_principal: Annotated[
        list[str],
        _several(
            "--deny-principal", "User:NAME", "Principal to deny; overrides other ACLs that allow"
        ),
    ] = field(default_factory=list)
    allow_host: Annotated[
        list[str], _several("--allow-host", "ADDRESS", "IP address to allow; by default any")
    ] = field(default_factory=list)
    deny_host: Annotated[
        list[str], _several("--deny-host", "ADDRESS", "IP address to deny; by default any")
    ] = field(default_factory=list)
    operation: Annotated[
        list[str],
        _several(
            "--operation", "NAME", "Operation: Read, Write, Create, Delete, Alter, Describe ..."
        ),
    ] = field(default_factory=list)
    role: Annotated[
        Literal["admin", "producer", "consumer"] | None,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="admin, producer or consumer, instead of operations.",
            show_default=False,
        ),
    ] = None
    producer: Annotated[
        bool, typer.Option("--producer", help="All ACLs that a producer to the topics needs.")
    ] = False
    consumer: Annotated[
        bool,
        typer.Option(
            "--consumer", help="All ACLs that a consumer of the topics in the groups needs."
        ),
    ] = False
