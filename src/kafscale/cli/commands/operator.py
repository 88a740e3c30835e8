"""`kafscale operator`: run the Kubernetes operator, or print what it needs to be known first."""

import typer

from kafscale.cli.commands.broker import announce
from kafscale.cli.commands.config import ConfigFile, effective
from kafscale.errors import ConfigError

app = typer.Typer(invoke_without_command=True)


@app.callback()
def operator(context: typer.Context, config: ConfigFile = None) -> None:
    """Run the Kubernetes operator: look after all KafscaleClusters and KafscaleTopics.

    Which Kubernetes that is comes from the pod that this runs in, or else from the kubeconfig. Of
    several operators one acts, and the others stand by.
    """
    if context.invoked_subcommand is not None:
        return
    # Few commands need these, and they load slowly.
    try:
        import uvloop  # noqa: PLC0415

        from kafscale.operator.app import run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is missing: install the extra with pip install 'kafscale[operator]'"
        ) from None
    from kafscale.observability import logging  # noqa: PLC0415

    loaded = effective(config)
    logging.configure(loaded.logging.level, loaded.logging.format)
    logging.log_configuration(loaded)
    uvloop.run(run(loaded, announce))


@app.command("crds")
def crds() -> None:
    """Print the CustomResourceDefinitions, for `kubectl apply -f -`."""
    from kafscale.operator.crd.rendering import render_definitions  # noqa: PLC0415

    typer.echo("---\n".join(render_definitions().values()), nl=False)
