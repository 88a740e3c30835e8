"""`kafscale user`: list, create and delete those who log in with a password (SCRAM)."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to load.

from collections.abc import Sequence
from enum import StrEnum
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.cli.confirm import YesOption, confirm, report
from kafscale.cli.connection.client_run import run
from kafscale.cli.connection.kafka import BootstrapOption, secured
from kafscale.cli.output import Output, OutputOption, print_data
from kafscale.cli.password import PasswordFileOption, read_password
from kafscale.security.sasl.scram import ITERATIONS_DEFAULT, ITERATIONS_MAX, ITERATIONS_MIN

if TYPE_CHECKING:
    from kafscale.admin.security.users import Password
    from kafscale.metadata.access.model import ScramMechanism

app = typer.Typer(
    no_args_is_help=True, help="List, create and delete users who log in with a password (SCRAM)."
)


class Mechanism(StrEnum):
    """The kinds of SCRAM, spelled as Kafka does."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The user.")]
IterationsOption = Annotated[
    int,
    typer.Option(
        "--iterations",
        min=ITERATIONS_MIN,
        max=ITERATIONS_MAX,
        help="How much work it is to try one password.",
    ),
]
MechanismOption = Annotated[
    list[Mechanism],
    typer.Option("--mechanism", "-m", case_sensitive=False, help="Only this one; may be repeated."),
]


@app.command("list")
def list_users(output: OutputOption = Output.TABLE, bootstrap: BootstrapOption = "") -> None:
    """List the users of the cluster who can log in by SCRAM, and how.

    \b
    kafscale user list
    kafscale user list -o json | jq -r '.[].user'
    """
    from kafscale.admin.security import users as user_admin
    from kafscale.cli.commands.user import tables

    users = run(bootstrap, user_admin.list_all)
    if output is Output.TABLE:
        tables.print_list(users)
    else:
        print_data(users, output)


@app.command()
def create(
    name: NameArgument,
    *,
    mechanism: MechanismOption = [],  # noqa: B006 - typer makes a list of its own.
    iterations: IterationsOption = ITERATIONS_DEFAULT,
    password_file: PasswordFileOption = "",
    bootstrap: BootstrapOption = "",
) -> None:
    """Let somebody log in: by both kinds of SCRAM, unless one is chosen.

    The password is asked for twice, or read from a file. It does not leave this
    machine: brokers need only what shows that somebody knows it.

    \b
    kafscale user create alice
    pass show kafka/alice | kafscale user create alice --password-file -
    """
    from kafscale.admin.security import users as user_admin
    from kafscale.cli.commands.user import tables as user_tables

    security, chosen = secured(), _chosen(mechanism or list(Mechanism))
    first = _password(password_file, name, iterations)
    run(bootstrap, lambda client: user_admin.create(client, name, first, chosen))
    typer.echo(f"created user {name} for {_told(chosen)}")
    protocol = security.protocol if security.authenticates else "SASL_SSL"
    user_tables.print_login(name, chosen[-1].label, protocol)


@app.command()
def password(
    name: NameArgument,
    *,
    mechanism: MechanismOption = [],  # noqa: B006
    iterations: IterationsOption = ITERATIONS_DEFAULT,
    password_file: PasswordFileOption = "",
    bootstrap: BootstrapOption = "",
) -> None:
    """Give a user another password. Who is logged in stays so for the session.

    \b
    kafscale user password alice
    kafscale user password alice --password-file new-password
    """
    from kafscale.admin.security import users as user_admin

    new = _password(password_file, name, iterations)
    changed = run(
        bootstrap, lambda client: user_admin.change_password(client, name, new, _chosen(mechanism))
    )
    typer.echo(f"changed the password of user {name} for {_told(changed)}")


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The users.")],
    *,
    mechanism: MechanismOption = [],  # noqa: B006
    yes: YesOption = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Be content if a user does not exist.")
    ] = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Let users not log in any more. On a terminal it asks before it does.

    \b
    kafscale user delete alice
    kafscale user delete alice bob --yes
    """
    from kafscale.admin.security import users as user_admin

    confirm(names, "ways to log in", yes=yes)
    deleted, problems = run(
        bootstrap,
        lambda client: user_admin.delete(client, names, _chosen(mechanism), missing_ok=if_exists),
    )
    report("user", deleted, problems)


def _password(file: str, user: str, iterations: int) -> "Password":
    from kafscale.admin.security.users import Password

    return Password(text=read_password(file, user), iterations=iterations, random=SystemRandom())


def _chosen(mechanisms: Sequence[Mechanism]) -> "list[ScramMechanism]":
    from kafscale.metadata.access.model import ScramMechanism

    return sorted({ScramMechanism[each.name] for each in mechanisms})


def _told(mechanisms: "Sequence[ScramMechanism]") -> str:
    return " and ".join(each.label for each in mechanisms)
