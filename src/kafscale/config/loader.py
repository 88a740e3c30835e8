"""Builds a `Config` from defaults, file, environment and options: each overrides those before it.

Every value is validated, even if a later source overrides it, and all problems are reported at
once. An unknown variable that starts with `KAFSCALE_` is an error, so that a typo is not ignored.
The environment is an argument; only the command line reads that of the process. `file` reads the
file.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafscale.config.model import (
    ADDRESSES,
    CONFIG_FILE_VARIABLE,
    OPTIONS,
    SETTINGS,
    VARIABLES,
    Config,
)
from kafscale.config.schema import RawValue, Setting, SourceValues, inner_group, suggestion
from kafscale.config.validation import validate
from kafscale.errors import ConfigError
from kafscale.net.address import ANY_ADDRESS

DEFAULT_FILE = Path("/etc/kafscale/broker.yaml")

_PREFIX = "KAFSCALE_"
_SERVICE_LINK = re.compile(
    r".+_SERVICE_(HOST|PORT)(_[A-Z0-9_]+)?|.+_PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?"
)
_ADDRESS = re.compile(r"(?P<host>\[[^\]]+\]|[^:\s]*):(?P<port>\d+)")


def load(
    environ: Mapping[str, str],
    file: Path | None = None,
    *,
    options: Mapping[str, str] = {},
    default_file: Path = DEFAULT_FILE,
) -> Config:
    """Load the configuration; `options` are those of `model.OPTIONS` that were given.

    A file that is named, by argument or by `KAFSCALE_CONFIG_FILE`, must exist; the default file
    need not.
    """
    if file is None and environ.get(CONFIG_FILE_VARIABLE):
        file = Path(environ[CONFIG_FILE_VARIABLE])
    if file is None and default_file.exists():
        file = default_file

    sources = [_read_environment(environ), _read_options(options)]
    if file:
        from kafscale.config.file import read_file  # noqa: PLC0415 - YAML is slow to import.

        sources.insert(0, read_file(file))
    problems = [problem for source in sources for problem in source.problems]
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for raw in (raw for source in sources for raw in source.values):
        try:
            values[raw.setting.attribute] = raw.setting.read(raw.raw)
        except ValueError as error:
            problems.append(raw.problem(error))
        origins[raw.setting.path] = raw.origin
    if not problems:
        config: Config = _build(Config, values, origins=origins)
        problems = validate(config)
    if problems:
        raise ConfigError("\n".join(problems))
    return config


def _build(group: type, values: Mapping[str, object], prefix: str = "", **more: object) -> Any:
    """Create a `group` with the given values by attribute, and defaults for all others."""
    for field in dataclasses.fields(group):
        attribute = prefix + field.name
        if attribute in values:
            more[field.name] = values[attribute]
        elif inner := inner_group(field):
            more[field.name] = _build(inner, values, f"{attribute}.")
    return group(**more)


def _read_environment(environ: Mapping[str, str]) -> SourceValues:
    """Read all values, and report unknown variables."""
    values = SourceValues()
    variables = {
        name: value
        for name, value in environ.items()
        if name.startswith(_PREFIX) and not _is_service_link(name, value)
    }
    for name in sorted(variables.keys() - set(VARIABLES)):
        hint = suggestion(name, VARIABLES, _PREFIX)
        values.problems.append(f"unknown variable {name}: {hint}")
    values.values += _addresses(variables, values.problems)
    for setting in SETTINGS:
        # Later values override earlier ones, so the first variable comes last.
        for variable in reversed(setting.variables):
            if variable in variables:
                values.values.append(RawValue(setting, variables[variable], variable))
    return values


def _read_options(options: Mapping[str, str]) -> SourceValues:
    """Read the values of options of the command line."""
    values = SourceValues()
    for name, text in options.items():
        settings = OPTIONS[name]
        if len(settings) > 1:
            values.values += _address(name, text, settings, values.problems)
        else:
            values.values += [RawValue(setting, text, name) for setting in settings]
    return values


def _addresses(variables: Mapping[str, str], problems: list[str]) -> Iterator[RawValue]:
    for name, settings in ADDRESSES.items():
        if name in variables:
            yield from _address(name, variables[name], settings, problems)


def _address(
    origin: str, text: str, settings: Sequence[Setting], problems: list[str]
) -> Iterator[RawValue]:
    """The values of a host and a port."""
    host, port = settings
    match = _ADDRESS.fullmatch(text.strip())
    if match is None:
        problems.append(f'{origin}: "{text}" is not an address; expected host:port or :port')
        return
    yield RawValue(host, match["host"].strip("[]") or ANY_ADDRESS, origin)
    yield RawValue(port, match["port"], origin)


def _is_service_link(name: str, value: str) -> bool:
    """True for a variable that Kubernetes sets for a Service whose name starts with `kafscale`.

    For a Service `kafscale-broker` every pod gets `KAFSCALE_BROKER_PORT=tcp://10.0.0.1:9092` and
    others; these are no settings.
    """
    is_link = value.startswith(("tcp://", "udp://", "sctp://")) and name.endswith("_PORT")
    return is_link or bool(_SERVICE_LINK.fullmatch(name))
