"""Which brokers a command asks, and how: by its options, or else by the settings.

The law: whoever takes `--bootstrap-server` takes `--command-config` as well. The second is given to
all of them in one place, `take_command_config`, and is heard in one place, `secured`.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kafscale.cli.commands.config import effective
from kafscale.net.host_port import Address, parse

if TYPE_CHECKING:
    from kafscale.client.security import Security

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
CommandConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="How to log in, as Kafka's tools are told; by default KAFSCALE_CLIENT_... say so.",
        show_default=False,
    ),
]

_BOOTSTRAP: Final = "bootstrap"
_COMMAND_CONFIG: Final = Parameter(
    "command_config", Parameter.KEYWORD_ONLY, default=None, annotation=CommandConfigOption
)
_file: ContextVar[Path | None] = ContextVar("command_config", default=None)
"""The file that the command which runs was given."""


def chosen(option: str) -> list[Address]:
    """The brokers that the option names, or else the settings."""
    names: Sequence[str] = option.split(",") if option else effective().client.bootstrap_servers
    try:
        return [parse(name.strip()) for name in names if name.strip()]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap-server") from None


def secured() -> "Security":
    """How to talk to them: as the file of the command says, or else the settings."""
    from kafscale.client.security import Security  # noqa: PLC0415 - it is slow to load.

    settings = effective().client
    if (file := _file.get()) is not None:
        from kafscale.cli.connection import command_config, properties  # noqa: PLC0415 - rarely needed.

        try:
            settings = command_config.applied(settings, properties.parse(file.read_text("utf-8")))
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"{file}: {error}", param_hint="--command-config") from None
    return Security.of(settings)


def take_command_config(app: typer.Typer) -> None:
    """Let every command that takes --bootstrap-server take --command-config as well."""
    for group in app.registered_groups:
        if group.typer_instance is not None:
            take_command_config(group.typer_instance)
    for command in app.registered_commands:
        if command.callback is not None and _BOOTSTRAP in signature(command.callback).parameters:
            command.callback = _with_command_config(command.callback)


def _with_command_config(command: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(command)
    def called(*arguments: Any, command_config: Path | None, **options: Any) -> Any:
        before = _file.set(command_config)
        try:
            return command(*arguments, **options)
        finally:
            _file.reset(before)

    taken = signature(command)
    parameters = [*taken.parameters.values(), _COMMAND_CONFIG]
    called.__signature__ = taken.replace(parameters=parameters)  # type: ignore[attr-defined]
    return called
