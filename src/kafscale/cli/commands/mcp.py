"""`kafscale mcp`: serve the Model Context Protocol for AI assistants."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; the SDK is slow to load.

import asyncio
import sys
from typing import Annotated

import typer

from kafscale.cli.commands.config import ConfigFile, load_config
from kafscale.errors import ConfigError


def mcp(
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP instead of standard input and output.")
    ] = False,
    allow_writes: Annotated[
        bool | None,
        typer.Option(
            "--allow-writes/--read-only",
            help="Offer tools that change the cluster; by default KAFSCALE_MCP_ALLOW_WRITES.",
            show_default=False,
        ),
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Serve the Model Context Protocol, so that AI assistants can query the cluster.

    Without options it uses standard input and output, for assistants that start it as a child
    process. KAFSCALE_BOOTSTRAP_SERVERS and KAFSCALE_CONTROL_SERVERS name the cluster.

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

    loaded = load_config(config)
    # Standard output carries the protocol, so logs go to standard error.
    logging.configure("warn", loaded.logging.format, stream=sys.stderr)
    writes = loaded.mcp.allow_writes if allow_writes is None else allow_writes
    mcp_server = server(ClusterConnections(loaded), allow_writes=writes)
    if http:
        asyncio.run(serve(mcp_server, loaded.mcp, lambda line: typer.echo(line, err=True)))
    else:
        asyncio.run(mcp_server.run_stdio_async())
