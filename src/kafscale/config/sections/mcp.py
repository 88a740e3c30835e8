"""Settings of the MCP server: who may ask it over HTTP, and whether it may change anything."""

from dataclasses import dataclass
from typing import Final

from kafscale.config.schema import setting
from kafscale.config.types import Boolean, Integer, Text

_HOST: Final = Text("a host name or an address", r"[0-9A-Za-z._:%-]+")


@dataclass(frozen=True, kw_only=True)
class Mcp:
    """The MCP server, `kafscale mcp`."""

    allow_writes: bool = setting(False, Boolean())
    """Whether assistants are offered tools that change the cluster. False, because one that only
    looks can break nothing."""

    token: str = setting("", Text(optional=True), secret=True)
    """What clients have to show as a bearer token when they come over HTTP. There is no default,
    and without it nothing is served over HTTP."""

    host: str = setting("127.0.0.1", _HOST)
    """The address on which it is served over HTTP. Only this machine by default."""

    port: int = setting(8811, Integer(0, 65535))
    """The port on which it is served over HTTP; 0 takes any free one. 8811 is one that little else
    is known to use."""
