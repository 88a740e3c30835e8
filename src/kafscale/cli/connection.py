"""Connects commands to brokers and to the control plane, as options and settings say.

Every command with `--bootstrap-server` also has `--command-config`: `add_command_config_option`
adds the option to all of them, and `client_security` reads it.
"""

# ruff: noqa: PLC0415 - messages, TLS and gRPC are slow to import.

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from kafscale.cli.commands.config import load_config
from kafscale.config.sections.security import ClientTls
from kafscale.net.address import CONTROL_PORT_DEFAULT, Address, parse

if TYPE_CHECKING:
    from kafscale.admin.cluster.control_client import ClusterControlClient
    from kafscale.client.client import Client
    from kafscale.client.security import Security

Result = TypeVar("Result")

BootstrapOption = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,...",
        help="Bootstrap servers; by default KAFSCALE_BOOTSTRAP_SERVERS or localhost:9092.",
        show_default=False,
    ),
]
CommandConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Properties file, as for Kafka's tools; by default KAFSCALE_CLIENT_... settings.",
        show_default=False,
    ),
]

ControlOption = Annotated[
    str,
    typer.Option(
        "--control",
        "-c",
        metavar="HOST:PORT,...",
        help="Control-plane addresses; by default KAFSCALE_CONTROL_SERVERS or localhost:9095.",
        show_default=False,
    ),
]

_BOOTSTRAP: Final = "bootstrap"
_COMMAND_CONFIG: Final = Parameter(
    "command_config", Parameter.KEYWORD_ONLY, default=None, annotation=CommandConfigOption
)
_command_config_file: ContextVar[Path | None] = ContextVar("command_config", default=None)
"""The value of `--command-config` of the current command."""


def run(bootstrap: str, task: "Callable[[Client], Awaitable[Result]]") -> Result:
    """Run a task with a client that is connected to the bootstrap servers."""

    async def run_connected() -> Result:
        async with client:
            return await task(client)

    client = create_client(bootstrap)
    return asyncio.run(run_connected())


def create_client(bootstrap: str) -> "Client":
    """A client for the bootstrap servers of the option, or of the settings."""
    from kafscale.client.client import Client

    return Client(bootstrap_addresses(bootstrap), client_security())


def bootstrap_addresses(option: str) -> list[Address]:
    """The bootstrap servers of the option, or of the settings."""
    names: Sequence[str] = option.split(",") if option else load_config().client.bootstrap_servers
    try:
        return [parse(name.strip()) for name in names if name.strip()]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap-server") from None


def client_security() -> "Security":
    """Security protocol and credentials: from `--command-config` on top of the settings."""
    from kafscale.client.security import Security

    settings = load_config().client
    if (file := _command_config_file.get()) is not None:
        from kafscale.cli import command_config

        try:
            values = command_config.parse_properties(file.read_text("utf-8"))
            settings = command_config.apply_properties(settings, values)
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"{file}: {error}", param_hint="--command-config") from None
    return Security.from_settings(settings)


def add_command_config_option(app: typer.Typer) -> None:
    """Add --command-config to every command that has --bootstrap-server."""
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_command_config_option(group.typer_instance)
    for command in app.registered_commands:
        if command.callback is not None and _BOOTSTRAP in signature(command.callback).parameters:
            command.callback = _with_command_config(command.callback)


def _with_command_config(command: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(command)
    def wrapper(*arguments: Any, command_config: Path | None, **options: Any) -> Any:
        token = _command_config_file.set(command_config)
        try:
            return command(*arguments, **options)
        finally:
            _command_config_file.reset(token)

    original = signature(command)
    parameters = [*original.parameters.values(), _COMMAND_CONFIG]
    wrapper.__signature__ = original.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapper


def run_control(
    control: str, task: "Callable[[ClusterControlClient], Awaitable[Result]]"
) -> Result:
    """Run a task with a client of the control plane."""
    from kafscale.admin.cluster.control_client import ClusterControlClient

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
    return load_config().client.effective_control_tls
