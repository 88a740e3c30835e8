"""The options of `kafscale acl`, named as those of `kafka-acls` are."""

from enum import StrEnum
from typing import Annotated, Any, Final

import typer


class Role(StrEnum):
    """What somebody is: one rule that stands for several operations."""

    ADMIN = "admin"
    PRODUCER = "producer"
    CONSUMER = "consumer"


class Pattern(StrEnum):
    """How the name in a new rule is to be read."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


class SoughtPattern(StrEnum):
    """How the names in rules that are sought are compared."""

    LITERAL = "literal"
    PREFIXED = "prefixed"
    ANY = "any"
    MATCH = "match"


def _several(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=f"{text}; may be repeated.")


_PATTERN: Final = "--resource-pattern-type"

TopicOption = Annotated[list[str], _several("--topic", "TOPIC", "A topic, or '*' for all")]
GroupOption = Annotated[list[str], _several("--group", "GROUP", "A group, or '*' for all")]
TransactionalIdOption = Annotated[
    list[str], _several("--transactional-id", "ID", "A transactional id, or '*' for all")
]
UserOption = Annotated[
    list[str], _several("--user", "User:NAME", "A user whose tokens it is about")
]
ClusterOption = Annotated[bool, typer.Option("--cluster", help="The cluster as a whole.")]
PatternOption = Annotated[
    Pattern, typer.Option(_PATTERN, help="Whether names are whole, or how others begin.")
]
SoughtPatternOption = Annotated[
    SoughtPattern,
    typer.Option(
        _PATTERN,
        help="Rules for this whole name, this prefix, either; match: all that bear on the name.",
    ),
]
AllowPrincipalOption = Annotated[
    list[str], _several("--allow-principal", "User:NAME", "Who may; User:* is everybody")
]
DenyPrincipalOption = Annotated[
    list[str], _several("--deny-principal", "User:NAME", "Who must not, whatever else allows it")
]
AllowHostOption = Annotated[
    list[str], _several("--allow-host", "ADDRESS", "From where they may; from anywhere by default")
]
DenyHostOption = Annotated[
    list[str],
    _several("--deny-host", "ADDRESS", "From where they must not; from anywhere by default"),
]
PrincipalOption = Annotated[list[str], _several("--principal", "User:NAME", "Rules about somebody")]
OperationOption = Annotated[
    list[str], _several("--operation", "NAME", "Read, Write, Create, Delete, Alter, Describe ...")
]
RoleOption = Annotated[
    Role | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="admin, producer or consumer, in place of operations.",
        show_default=False,
    ),
]
ProducerOption = Annotated[
    bool, typer.Option("--producer", help="Rules that a producer to the topics needs.")
]
ConsumerOption = Annotated[
    bool, typer.Option("--consumer", help="Rules that a consumer of topics in groups needs.")
]
