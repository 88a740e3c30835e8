"""Where the control plane of a cluster is, and how it is asked: by an option or the settings."""

from collections.abc import Sequence
from typing import Annotated

import typer

from kafscale.cli.commands.config import effective
from kafscale.config.sections.security import ClientTls
from kafscale.net.host_port import CONTROL_PORT_DEFAULT, Address, parse

ControlOption = Annotated[
    str,
    typer.Option(
        "--control",
        "-c",
        metavar="HOST:PORT,...",
        help="Brokers to ask first; by default KAFSCALE_CONTROL_SERVERS or localhost:9093.",
        show_default=False,
    ),
]


def chosen(option: str) -> list[Address]:
    """The brokers that the option names, or else the settings."""
    names: Sequence[str] = option.split(",") if option else effective().client.control_servers
    try:
        return [parse(name.strip(), CONTROL_PORT_DEFAULT) for name in names if name.strip()]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--control") from None


def encryption() -> ClientTls | None:
    """The files to ask with, or None where the settings say that it is asked in the clear."""
    settings = effective().client
    return settings.tls if settings.control_tls else None
