"""`kafscale user`: list, create and delete SCRAM users."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to import.

from collections.abc import Sequence
from enum import StrEnum
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafscale.cli.connection import BootstrapOption, client_security, run
from kafscale.cli.options import (
    PasswordFileOption,
    YesOption,
    confirm_deletion,
    read_password,
    report_deletions,
)
from kafscale.cli.output import Output, OutputOption, print_line, print_result, print_table
from kafscale.security.sasl.scram import ITERATIONS_DEFAULT, ITERATIONS_MAX, ITERATIONS_MIN

if TYPE_CHECKING:
    from kafscale.admin.security.users import Password, UserInfo
    from kafscale.metadata.access.model import ScramMechanism

app = typer.Typer(
    no_args_is_help=True, help="List, create and delete users who authenticate by SCRAM."
)

_LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Mechanism(StrEnum):
    """The SCRAM mechanisms, by their Kafka names."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the user.")]
IterationsOption = Annotated[
    int,
    typer.Option(
        "--iterations",
        min=ITERATIONS_MIN,
        max=ITERATIONS_MAX,
        help="SCRAM iterations: more make it slower to guess a password.",
    ),
]
MechanismOption = Annotated[
    list[Mechanism],
    typer.Option(
        "--mechanism",
        "-m",
        case_sensitive=False,
        help="SCRAM mechanism; may be repeated. By default, both.",
    ),
]


@app.command("list")
def list_users(output: OutputOption = Output.TABLE, bootstrap: BootstrapOption = "") -> None:
    """List SCRAM users and their mechanisms.

    \b
    kafscale user list
    kafscale user list -o json | jq -r '.[].user'
    """
    from kafscale.admin.security import users as user_admin

    users = run(bootstrap, user_admin.list_all)
    print_result(users, output, print_users)


@app.command()
def create(
    name: NameArgument,
    *,
    mechanism: MechanismOption = [],  # noqa: B006 - typer makes a list of its own.
    iterations: IterationsOption = ITERATIONS_DEFAULT,
    password_file: PasswordFileOption = "",
    bootstrap: BootstrapOption = "",
) -> None:
    """Create a user for SCRAM-SHA-256 and SCRAM-SHA-512, or only for --mechanism.

    The password is read from a prompt or a file. It does not leave this machine: brokers receive a
    salted hash of it, and store only keys that are derived from that hash.

    \b
    kafscale user create alice
    pass show kafka/alice | kafscale user create alice --password-file -
    """
    from kafscale.admin.security import users as user_admin

    security, mechanisms = client_security(), _scram_mechanisms(mechanism or list(Mechanism))
    first = _password(password_file, name, iterations)
    run(bootstrap, lambda client: user_admin.create(client, name, first, mechanisms))
    typer.echo(f"created user {name} for {_labels(mechanisms)}")
    protocol = security.protocol if security.authenticates else "SASL_SSL"
    print_client_properties(name, mechanisms[-1].label, protocol)


@app.command()
def password(
    name: NameArgument,
    *,
    mechanism: MechanismOption = [],  # noqa: B006
    iterations: IterationsOption = ITERATIONS_DEFAULT,
    password_file: PasswordFileOption = "",
    bootstrap: BootstrapOption = "",
) -> None:
    """Change the password of a user. Authenticated sessions remain valid.

    \b
    kafscale user password alice
    kafscale user password alice --password-file new-password
    """
    from kafscale.admin.security import users as user_admin

    new = _password(password_file, name, iterations)
    mechanisms = _scram_mechanisms(mechanism)
    changed = run(
        bootstrap, lambda client: user_admin.change_password(client, name, new, mechanisms)
    )
    typer.echo(f"changed the password of user {name} for {_labels(changed)}")


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of the users.")],
    *,
    mechanism: MechanismOption = [],  # noqa: B006
    yes: YesOption = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Ignore users that do not exist.")
    ] = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Delete users. On a terminal, the command asks for confirmation.

    \b
    kafscale user delete alice
    kafscale user delete alice bob --yes
    """
    from kafscale.admin.security import users as user_admin

    confirm_deletion(names, "credentials", yes=yes)
    mechanisms = _scram_mechanisms(mechanism)
    deleted, problems = run(
        bootstrap, lambda client: user_admin.delete(client, names, mechanisms, missing_ok=if_exists)
    )
    report_deletions("user", deleted, problems)


def _password(file: str, user: str, iterations: int) -> "Password":
    from kafscale.admin.security.users import Password

    return Password(text=read_password(file, user), iterations=iterations, random=SystemRandom())


def _scram_mechanisms(mechanisms: Sequence[Mechanism]) -> "list[ScramMechanism]":
    from kafscale.metadata.access.model import ScramMechanism

    return sorted({ScramMechanism[each.name] for each in mechanisms})


def _labels(mechanisms: "Sequence[ScramMechanism]") -> str:
    return " and ".join(each.label for each in mechanisms)


def print_users(users: "Sequence[UserInfo]") -> None:
    if not users:
        print_line("there are no SCRAM users; create one with: kafscale user create NAME")
        return
    print_table(
        ("user", "mechanism", "iterations"),
        (
            ((user.user, "bold") if not index else "", each.mechanism, str(each.iterations))
            for user in users
            for index, each in enumerate(user.credentials)
        ),
    )


def print_client_properties(user: str, mechanism: str, protocol: str) -> None:
    """Print the properties with which clients log in as a user."""
    print_line("\nclient properties, for Kafka clients and for --command-config:\n")
    quoted = user.replace("\\", "\\\\").replace('"', '\\"')
    for line in (
        f"security.protocol={protocol}",
        f"sasl.mechanism={mechanism}",
        f'sasl.jaas.config={_LOGIN_MODULE} required username="{quoted}" password="...";',
    ):
        print_line((line, "bold"), indent=2)
