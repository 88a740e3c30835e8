"""`kafscale mcp`: let assistants ask about a cluster."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; the SDK is slow to load.

import asyncio
import sys
from typing import Annotated

import typer

from kafscale.cli.commands.config import ConfigFile, effective
from kafscale.errors import ConfigError


def mcp(
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP, rather than on standard input.")
    ] = False,
    allow_writes: Annotated[
        bool | None,
        typer.Option(
            "--allow-writes/--read-only",
            help="Offer tools that change something; by default KAFSCALE_MCP_ALLOW_WRITES.",
            show_default=False,
        ),
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Serve the Model Context Protocol, so that assistants can ask about the cluster.

    Without options it speaks on standard input and output, as assistants start it. Which cluster it
    is about is said by KAFSCALE_BOOTSTRAP_SERVERS and KAFSCALE_CONTROL_SERVERS.

    \b
    kafscale mcp
    KAFSCALE_MCP_TOKEN=... kafscale mcp --http
    """
    try:
        from kafscale.mcp.http import serve
        from kafscale.mcp.server import server
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is missing: install the extra with pip install 'kafscale[mcp]'"
        ) from None
    from kafscale.admin.connection import ClusterConnections
    from kafscale.observability import logging

    loaded = effective(config)
    # Standard output belongs to the protocol, and logs go to standard error.
    logging.configure("warn", loaded.logging.format, stream=sys.stderr)
    writes = loaded.mcp.allow_writes if allow_writes is None else allow_writes
    made = server(ClusterConnections(loaded), allow_writes=writes)
    if http:
        asyncio.run(serve(made, loaded.mcp, lambda line: typer.echo(line, err=True)))
    else:
        asyncio.run(made.run_stdio_async())
