"""A `kafscale` to call: what it prints, what it complains about, and how it exits."""

import os

import pytest
from typer.testing import CliRunner

from kafscale.cli.main import app


@pytest.fixture
def kafscale(monkeypatch, tmp_path):
    """Call the command in an empty directory and an environment that says nothing to it."""
    for name in [name for name in os.environ if name.startswith("KAFSCALE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def call(*arguments, **environ):
        return CliRunner().invoke(app, arguments, env=environ, prog_name="kafscale")

    return call
