"""`kafscale console`: serve the web console."""

from kafscale.cli.commands.broker import announce
from kafscale.cli.commands.config import ConfigFile, load_config
from kafscale.errors import ConfigError


def console(config: ConfigFile = None) -> None:
    """Serve the web console until SIGTERM or Ctrl-C.

    It shows the cluster of client.bootstrapServers and client.controlServers, by default the broker
    on this machine. Sign-in is disabled until KAFSCALE_UI_USERNAME and KAFSCALE_UI_PASSWORD are
    set.
    """
    # Slow to import.
    try:
        import uvloop  # noqa: PLC0415

        from kafscale.console.server import run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is missing: install the extra with pip install 'kafscale[console]'"
        ) from None
    from kafscale.observability import logging  # noqa: PLC0415

    loaded = load_config(config)
    logging.configure(loaded.logging.level, loaded.logging.format)
    logging.log_configuration(loaded)
    uvloop.run(run(loaded, announce))
