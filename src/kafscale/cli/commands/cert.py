"""`kafscale cert`: certificates for trying TLS out."""

# ruff: noqa: B006, D301, PLC0415 - typer makes lists of its own; \b keeps the lines of examples
# apart; certificates are slow to load.

import re
import shlex
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafscale.cli.output import Output, OutputOption, print_data, print_line, print_table
from kafscale.text.formatting import pluralize

if TYPE_CHECKING:
    from kafscale.security.tls.dev_ca import DevCertificates

USER_DEFAULT: Final = "client"

_HOST: Final = re.compile(r"(\*\.)?[0-9A-Za-z._-]+|[0-9A-Fa-f:]+")
_USER: Final = re.compile(r"[0-9A-Za-z._@-]{1,64}")

app = typer.Typer(no_args_is_help=True, help="Make certificates for trying TLS out.")


@app.callback()
def certificates() -> None:
    """Keep `dev` a command of its own, though it is the only one."""


@app.command()
def dev(  # noqa: PLR0917 - typer makes options of them.
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The directory to write them to.")
    ] = Path("kafscale-certs"),
    host: Annotated[
        list[str],
        typer.Option(
            "--host", metavar="NAME", help="Another name or address of the server; may be repeated."
        ),
    ] = [],
    user: Annotated[
        list[str],
        typer.Option(
            "--user",
            metavar="NAME",
            help=f"A client to make one for, {USER_DEFAULT} by default; may be repeated.",
        ),
    ] = [],
    days: Annotated[
        int, typer.Option("--days", min=1, max=3650, help="How long they are valid.")
    ] = 365,
    force: Annotated[bool, typer.Option("--force", help="Replace those that are there.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make an authority of your own, and certificates for a server and its clients.

    The server's is for this machine, and for each --host. They are for trying things out; in
    production, have certificates issued by somebody who keeps the key of the authority safe.

    \b
    kafscale cert dev
    kafscale cert dev --host broker-0.example.com --user alice --user bob
    """
    from kafscale.security.tls import dev_ca

    users = list(dict.fromkeys(user)) or [USER_DEFAULT]
    _check("--host", _HOST, host)
    _check("--user", _USER, users)
    now = datetime.now(UTC)
    made = dev_ca.create_dev_certificates(
        out.absolute(),
        # Brokers that are told no name to go by tell each other that of their machine.
        hosts=[*host, *filter(_HOST.fullmatch, [socket.getfqdn()])],
        users=users,
        now=now,
        days=days,
        overwrites=force,
    )
    end = f"{now + timedelta(days=days):%Y-%m-%d}"
    if output is Output.TABLE:
        _print(made, f"{pluralize(days, 'day')}, until {end}")
    else:
        print_data(_data(made, end), output)


def _check(option: str, pattern: re.Pattern[str], values: Sequence[str]) -> None:
    for value in values:
        if not pattern.fullmatch(value):
            raise typer.BadParameter(f"{value!r} cannot be one", param_hint=option)


def _data(made: "DevCertificates", end: str) -> dict[str, object]:
    from kafscale.cli.commands import cert_advice as advice

    return {
        "validUntil": end,
        "files": [{"path": path, "holds": what} for path, what in advice.contents(made)],
        "brokerSettings": advice.broker_settings(made),
        "users": [
            {
                "name": name,
                "principal": f"User:CN={name}",
                "settings": advice.client_settings(made, files),
                "javaProperties": advice.java_settings(made, files),
                "librdkafkaProperties": advice.librdkafka_settings(made, files),
            }
            for name, files in made.users.items()
        ],
    }


def _print(made: "DevCertificates", validity: str) -> None:
    from kafscale.cli.commands import cert_advice as advice

    print_line(f"made an authority and certificates that are valid for {validity}\n")
    print_table(("file", "holds"), advice.contents(made))
    name, files = next(iter(made.users.items()))
    print_line("\nA broker that encrypts, and asks clients for certificates:\n")
    _print_exports(advice.broker_settings(made))
    _print_lines("kafscale broker")
    print_line(f"\nOur commands as {name}, whom rules know as User:CN={name}:\n")
    _print_exports(advice.client_settings(made, files))
    _print_lines("kafscale topic list", "kafscale cluster status")
    print_line("\nkcat:\n")
    options = advice.librdkafka_settings(made, files).items()
    pairs = " ".join(f"-X {shlex.quote(f'{key}={value}')}" for key, value in options)
    _print_lines(f"kcat -b localhost:9092 -L {pairs}")
    print_line("\nKafka's own tools, with these lines in the file that --command-config names:\n")
    _print_lines(*(f"{key}={value}" for key, value in advice.java_settings(made, files).items()))


def _print_exports(variables: Mapping[str, str]) -> None:
    _print_lines(*(f"export {name}={shlex.quote(value)}" for name, value in variables.items()))


def _print_lines(*lines: str) -> None:
    """Lines to be copied: none is broken, however long."""
    for line in lines:
        typer.echo(f"  {line}")
