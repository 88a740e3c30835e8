"""Settings from the environment: every variable that starts with `KAFSCALE_`.

The law: a variable with our prefix is either known or refused, so that a slip of the pen never
passes for a setting. The environment is an argument; only the command line reads the real one.
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
    """Every value that the environment holds, and every variable that it should not."""
    found = SourceValues()
    ours = {
        name: value
        for name, value in environ.items()
        if name.startswith(_PREFIX) and not _is_service_link(name, value)
    }
    for name in sorted(ours.keys() - set(VARIABLES)):
        hint = suggestion(name, VARIABLES, _PREFIX)
        found.problems.append(f"unknown variable {name}: {hint}")
    found.values += _addresses(ours, found.problems)
    for setting in SETTINGS:
        # The first variable wins, so it has to come last.
        for variable in reversed(setting.variables):
            if variable in ours:
                found.values.append(RawValue(setting, ours[variable], variable))
    return found


def _addresses(ours: Mapping[str, str], problems: list[str]) -> Iterator[RawValue]:
    for name, (host, port) in ADDRESSES.items():
        if name not in ours:
            continue
        match = _ADDRESS.fullmatch(ours[name].strip())
        if match is None:
            problems.append(
                f'{name}: "{ours[name]}" is not an address; it takes host:port or :port'
            )
            continue
        if match["host"]:
            yield RawValue(host, match["host"].strip("[]"), name)
        yield RawValue(port, match["port"], name)


def _is_service_link(name: str, value: str) -> bool:
    """Whether Kubernetes set this variable for a Service whose name begins with `kafscale`.

    For a Service `kafscale-broker` every pod gets `KAFSCALE_BROKER_PORT=tcp://10.0.0.1:9092` and
    more: nobody's setting, and no reason to refuse a start.
    """
    is_link = value.startswith(("tcp://", "udp://", "sctp://")) and name.endswith("_PORT")
    return is_link or bool(_SERVICE_LINK.fullmatch(name))
