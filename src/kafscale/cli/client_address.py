"""Which brokers a command asks: those of its option, several with commas, or of the settings."""

from collections.abc import Sequence
from typing import Annotated

import typer

from kafscale.cli.config import effective
from kafscale.client.address import Address, parse

BootstrapOption = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,...",
        help="Brokers to ask first; by default KAFSCALE_BOOTSTRAP_SERVERS or localhost:9092.",
        show_default=False,
    ),
]


def chosen(option: str) -> list[Address]:
    """The brokers that the option names, or else the settings."""
    names: Sequence[str] = option.split(",") if option else effective().client.bootstrap_servers
    try:
        return [parse(name.strip()) for name in names if name.strip()]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap-server") from None
