"""`kafscale config`: show the effective settings, and check a settings file.

`kafscale.config` loads, checks and masks settings; this module only prints them.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from kafscale.cli.output import Output, OutputOption, Part, print_data, print_line, print_table
from kafscale.config import SETTINGS, Config, Setting, load

app = typer.Typer(no_args_is_help=True, help="Show and check the settings.")

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Settings file; by default KAFSCALE_CONFIG_FILE or /etc/kafscale/broker.yaml.",
    ),
]


def load_config(file: Path | None = None, options: Mapping[str, str] = {}) -> Config:
    """Load the effective settings from a file, the environment, and options of the command."""
    return load(os.environ, file, options=options)


def child_environment(more: Mapping[str, str]) -> dict[str, str]:
    """The environment for a child process: that of this command and `more`."""
    return {**os.environ, **more}


@app.command()
def show(
    prefix: Annotated[
        str,
        typer.Argument(
            help="A setting or a group of settings, such as storage.", show_default=False
        ),
    ] = "",
    config: ConfigFile = None,
    describe: Annotated[
        bool, typer.Option("--describe", "-d", help="Also describe each setting.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show all effective settings, their values and origins. Secrets are masked."""
    loaded = load_config(config)
    settings = _select(prefix)
    if output is not Output.TABLE:
        print_data([_record(loaded, setting, describe) for setting in settings], output)
    elif describe:
        for setting in settings:
            _print_description(loaded, setting)
    else:
        print_table(("setting", "value", "set by"), (_row(loaded, s) for s in settings))


@app.command()
def check(config: ConfigFile = None) -> None:
    """Check the settings; print all problems and exit with 1 if there are any."""
    loaded = load_config(config)
    typer.echo(f"ok: {len(SETTINGS)} settings, {len(loaded.origins)} of them set")


def _select(prefix: str) -> list[Setting]:
    selected = [s for s in SETTINGS if prefix in {"", s.path} or s.path.startswith(f"{prefix}.")]
    if not selected:
        groups = ", ".join(dict.fromkeys(s.path.partition(".")[0] for s in SETTINGS))
        raise typer.BadParameter(f"unknown setting or group {prefix!r}; the groups are {groups}")
    return selected


def _row(config: Config, setting: Setting) -> tuple[Part, ...]:
    emphasis = "bold" if setting.path in config.origins else "dim"
    value = setting.show(setting.value(config))
    return setting.path, (value, emphasis), (config.origin(setting.path), emphasis)


def _record(config: Config, setting: Setting, describe: bool) -> dict[str, object]:
    record: dict[str, object] = {
        "setting": setting.path,
        "value": setting.export(setting.value(config)),
        "setBy": config.origin(setting.path),
    }
    if describe:
        record["description"] = setting.description
        record["takes"] = setting.type.takes
        record["variables"] = list(setting.variables)
    return record


def _print_description(config: Config, setting: Setting) -> None:
    value = setting.show(setting.value(config)) or "(empty)"
    print_line((setting.path, "bold"), f" = {value}")
    facts = {
        "": setting.description,
        "takes: ": setting.type.takes,
        "variable: ": ", ".join(setting.variables),
        "set by: ": config.origin(setting.path),
    }
    for label, fact in facts.items():
        print_line((label, "dim"), fact, indent=2)
    print_line()
