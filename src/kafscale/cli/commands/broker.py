"""`kafscale broker`: run a broker until it is told to stop."""

import sys

import typer

from kafscale.cli.commands.config import ConfigFile, effective


def broker(config: ConfigFile = None) -> None:
    """Run a broker until it is told to stop.

    Without any settings it is complete by itself: records and metadata are kept in ./kafscale-data,
    and topics are created on first use.
    """
    # What only a broker needs loads slowly, and other commands do without it.
    import uvloop  # noqa: PLC0415

    from kafscale.broker import app  # noqa: PLC0415
    from kafscale.observability import logging  # noqa: PLC0415

    loaded = effective(config)
    logging.configure(loaded.logging.level, loaded.logging.format)
    logging.log_configuration(loaded)
    uvloop.run(app.run(loaded, announce))


def announce(line: str) -> None:
    """Tell whoever started the broker, be it through a pipe, that clients can come."""
    typer.echo(line)
    sys.stdout.flush()
