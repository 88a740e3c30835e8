"""Settings of the MCP server."""

from dataclasses import dataclass
from typing import Final

from kafscale.config.schema import setting
from kafscale.config.types import Boolean, Integer, Text

_HOST: Final = Text("a host name or an address", r"[0-9A-Za-z._:%-]+")


@dataclass(frozen=True, kw_only=True)
class Mcp:
    """The MCP server, `kafscale mcp`."""

    allow_writes: bool = setting(False, Boolean())
    """Whether the server offers tools that change the cluster. False, because read-only tools
    cannot do damage."""

    token: str = setting("", Text(optional=True), secret=True)
    """The bearer token that HTTP clients must send. There is no default, and without a token
    nothing is served over HTTP."""

    host: str = setting("127.0.0.1", _HOST)
    """The address of the HTTP server. Only the local machine by default."""

    port: int = setting(8811, Integer(0, 65535))
    """The port of the HTTP server; 0 takes any free port. 8811 is rarely used by other software."""
