"""Connects commands to the control plane of a cluster, as options and settings say."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from kafscale.cli.commands.config import load_config
from kafscale.config.sections.security import ClientTls
from kafscale.net.host_port import CONTROL_PORT_DEFAULT, Address, parse

if TYPE_CHECKING:
    from kafscale.admin.cluster.control_client import ClusterControlClient

Result = TypeVar("Result")

ControlOption = Annotated[
    str,
    typer.Option(
        "--control",
        "-c",
        metavar="HOST:PORT,...",
        help="Control-plane addresses; by default KAFSCALE_CONTROL_SERVERS or localhost:9093.",
        show_default=False,
    ),
]


def run(control: str, task: "Callable[[ClusterControlClient], Awaitable[Result]]") -> Result:
    """Run a task with a client of the control plane."""
    # gRPC is slow to import.
    from kafscale.admin.cluster.control_client import ClusterControlClient  # noqa: PLC0415

    async def run_connected() -> Result:
        async with ClusterControlClient(addresses, control_tls()) as cluster:
            return await task(cluster)

    addresses = control_addresses(control)
    return asyncio.run(run_connected())


def control_addresses(option: str) -> list[Address]:
    """The control-plane addresses of the option, or of the settings."""
    names: Sequence[str] = option.split(",") if option else load_config().client.control_servers
    try:
        return [parse(name.strip(), CONTROL_PORT_DEFAULT) for name in names if name.strip()]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--control") from None


def control_tls() -> ClientTls | None:
    """The TLS settings of the control plane; None for connections without TLS."""
    settings = load_config().client
    return settings.tls if settings.control_tls else None
