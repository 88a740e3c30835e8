"""`kafscale operator`: run the Kubernetes operator, or print its CRDs."""

from importlib import resources

import typer

from kafscale.cli.commands.broker import announce
from kafscale.cli.commands.config import ConfigFile, load_config
from kafscale.errors import ConfigError

app = typer.Typer(invoke_without_command=True)


@app.callback()
def operator(context: typer.Context, config: ConfigFile = None) -> None:
    """Run the Kubernetes operator, which reconciles KafscaleClusters and KafscaleTopics.

    It connects with the service account of its pod, or with the kubeconfig outside of a pod. Of
    several operators, one is the leader and the others stand by.
    """
    if context.invoked_subcommand is not None:
        return
    # Slow to import.
    try:
        import uvloop  # noqa: PLC0415

        from kafscale.operator.app import run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is missing: install the extra with pip install 'kafscale[operator]'"
        ) from None
    from kafscale.observability import logging  # noqa: PLC0415

    loaded = load_config(config)
    logging.configure(loaded.logging.level, loaded.logging.format)
    logging.log_configuration(loaded)
    uvloop.run(run(loaded, announce))


@app.command("crds")
def crds() -> None:
    """Print the CustomResourceDefinitions, for `kubectl apply -f -`."""
    directory = resources.files("kafscale") / "operator" / "crds"
    texts = sorted(file.read_text(encoding="utf-8") for file in directory.iterdir())
    typer.echo("---\n".join(texts), nl=False)
