"""Commands that run a server: `kafscale broker`, `console`, `operator` and `mcp`."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; servers are slow to import.

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from kafscale.cli.commands.config import ConfigFile, load_config
from kafscale.config import Config
from kafscale.errors import ConfigError

Serve = Callable[[Config, Callable[[str], None]], Coroutine[Any, Any, None]]

operator_app = typer.Typer(invoke_without_command=True)


def broker(
    *,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Where to listen for Kafka clients; :PORT is all addresses."
        ),
    ] = None,
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="The prefix of all objects in the bucket.")
    ] = None,
    security_protocol: Annotated[
        str | None,
        typer.Option(metavar="PROTOCOL", help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."),
    ] = None,
    tls_cert_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="The server certificate, as PEM.")
    ] = None,
    tls_key_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Its private key, as PEM.")
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Run a broker until SIGTERM or Ctrl-C.

    Without any settings, the broker needs no other services: it stores records and metadata in
    ./kafscale-data and creates topics on first use. Options override variables and the file;
    `kafscale config show` lists all settings.

    \b
    kafscale broker --listen :9092
    kafscale broker --security-protocol SSL --tls-cert-file broker.pem
    """
    from kafscale.broker import app

    options = {
        "--listen": listen,
        "--namespace": namespace,
        "--security-protocol": security_protocol,
        "--tls-cert-file": tls_cert_file,
        "--tls-key-file": tls_key_file,
    }
    _run(app.run, config, {name: text for name, text in options.items() if text is not None})


def console(config: ConfigFile = None) -> None:
    """Serve the web console until SIGTERM or Ctrl-C.

    It shows the cluster of client.bootstrapServers and client.controlServers, by default the broker
    on this machine. Sign-in is disabled until KAFSCALE_UI_USERNAME and KAFSCALE_UI_PASSWORD are
    set.
    """
    with _extra("console"):
        from kafscale.console import server
    _run(server.run, config)


@operator_app.callback()
def operator(context: typer.Context, config: ConfigFile = None) -> None:
    """Run the Kubernetes operator, which reconciles KafscaleClusters and KafscaleTopics.

    It connects with the service account of its pod, or with the kubeconfig outside of a pod. Of
    several operators, one is the leader and the others stand by.
    """
    if context.invoked_subcommand is not None:
        return
    with _extra("operator"):
        from kafscale.operator import app
    _run(app.run, config)


@operator_app.command("crds")
def crds() -> None:
    """Print the CustomResourceDefinitions, for `kubectl apply -f -`."""
    directory = resources.files("kafscale") / "operator" / "crds"
    texts = sorted(file.read_text(encoding="utf-8") for file in directory.iterdir())
    typer.echo("---\n".join(texts), nl=False)


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
    with _extra("mcp"):
        from kafscale.mcp.server import serve, server
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


@contextmanager
def _extra(name: str) -> Iterator[None]:
    """Say which extra to install if an import fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is missing: install the extra with pip install 'kafscale[{name}]'"
        ) from None


def _run(serve: Serve, config: Path | None, options: Mapping[str, str] = {}) -> None:
    import uvloop

    from kafscale.observability import logging

    loaded = load_config(config, options)
    logging.configure(
        loaded.logging.level, loaded.logging.format, audit_file=loaded.logging.audit_file
    )
    logging.log_configuration(loaded)
    uvloop.run(serve(loaded, _announce))


def _announce(line: str) -> None:
    """Print that the server accepts connections, and flush for a parent that reads a pipe."""
    typer.echo(line)
    sys.stdout.flush()
