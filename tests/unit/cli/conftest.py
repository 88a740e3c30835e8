"""A fixture that runs the `kafscale` command in this process."""

import os

import pytest
from typer.testing import CliRunner

from kafscale.cli.main import app


@pytest.fixture
def kafscale(monkeypatch, tmp_path):
    """Run the command in an empty directory, without KAFSCALE_ variables."""
    for name in [name for name in os.environ if name.startswith("KAFSCALE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def call(*arguments, **environ):
        return CliRunner().invoke(app, arguments, env=environ, prog_name="kafscale")

    return call
