"""Reads settings from environment variables that start with `KAFSCALE_`.

An unknown variable with that prefix is an error, so that a typo is not ignored. The environment is
an argument; only the command line reads that of the process.
"""

import re
from collections.abc import Iterator, Mapping

from kafscale.config.model import ADDRESSES, SETTINGS, VARIABLES
from kafscale.config.source import RawValue, SourceValues, suggestion

_PREFIX = "KAFSCALE_"
_SERVICE_LINK = re.compile(
    r".+_SERVICE_(HOST|PORT)(_[A-Z0-9_]+)?|.+_PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?"
)
_ADDRESS = re.compile(r"(?P<host>\[[^\]]+\]|[^:\s]*):(?P<port>\d+)")


def read_environment(environ: Mapping[str, str]) -> SourceValues:
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


def _addresses(variables: Mapping[str, str], problems: list[str]) -> Iterator[RawValue]:
    for name, (host, port) in ADDRESSES.items():
        if name not in variables:
            continue
        match = _ADDRESS.fullmatch(variables[name].strip())
        if match is None:
            problems.append(
                f'{name}: "{variables[name]}" is not an address; expected host:port or :port'
            )
            continue
        if match["host"]:
            yield RawValue(host, match["host"].strip("[]"), name)
        yield RawValue(port, match["port"], name)


def _is_service_link(name: str, value: str) -> bool:
    """True for a variable that Kubernetes sets for a Service whose name starts with `kafscale`.

    For a Service `kafscale-broker` every pod gets `KAFSCALE_BROKER_PORT=tcp://10.0.0.1:9092` and
    others; these are no settings.
    """
    is_link = value.startswith(("tcp://", "udp://", "sctp://")) and name.endswith("_PORT")
    return is_link or bool(_SERVICE_LINK.fullmatch(name))
