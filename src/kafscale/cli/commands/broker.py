"""`kafscale broker`: run a broker."""

import sys

import typer

from kafscale.cli.commands.config import ConfigFile, load_config


def broker(config: ConfigFile = None) -> None:
    """Run a broker until SIGTERM or Ctrl-C.

    Without any settings, the broker needs no other services: it stores records and metadata in
    ./kafscale-data and creates topics on first use.
    """
    # Slow to import, and no other command needs them.
    import uvloop  # noqa: PLC0415

    from kafscale.broker import app  # noqa: PLC0415
    from kafscale.observability import logging  # noqa: PLC0415

    loaded = load_config(config)
    logging.configure(loaded.logging.level, loaded.logging.format)
    logging.log_configuration(loaded)
    uvloop.run(app.run(loaded, announce))


def announce(line: str) -> None:
    """Print that the server accepts connections, and flush for a parent that reads a pipe."""
    typer.echo(line)
    sys.stdout.flush()
