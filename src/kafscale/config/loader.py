"""Builds a `Config` from defaults, file and environment; later sources override earlier ones.

Every value is validated, even if a later source overrides it, and all problems are reported at
once.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafscale.config.env import read_environment
from kafscale.config.model import CONFIG_FILE_VARIABLE, Config
from kafscale.config.schema import inner_group
from kafscale.config.source import SourceValues
from kafscale.config.validation import validate
from kafscale.errors import ConfigError

DEFAULT_FILE = Path("/etc/kafscale/broker.yaml")


def load(
    environ: Mapping[str, str], file: Path | None = None, *, default_file: Path = DEFAULT_FILE
) -> Config:
    """Load the configuration.

    A file that is named, by argument or by `KAFSCALE_CONFIG_FILE`, must exist; the default file
    need not.
    """
    if file is None and environ.get(CONFIG_FILE_VARIABLE):
        file = Path(environ[CONFIG_FILE_VARIABLE])
    if file is None and default_file.exists():
        file = default_file

    sources = [_read_file(file) if file else SourceValues(), read_environment(environ)]
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


def _read_file(file: Path) -> SourceValues:
    # YAML is slow to import, and not needed without a file.
    from kafscale.config.file import read_file  # noqa: PLC0415

    return read_file(file)


def _build(group: type, values: Mapping[str, object], prefix: str = "", **more: object) -> Any:
    """Create a `group` with the given values by attribute, and defaults for all others."""
    for field in dataclasses.fields(group):
        attribute = prefix + field.name
        if attribute in values:
            more[field.name] = values[attribute]
        elif inner := inner_group(field):
            more[field.name] = _build(inner, values, f"{attribute}.")
    return group(**more)
