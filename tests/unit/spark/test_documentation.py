"""docs/spark.md lists exactly the existing options, jobs and examples."""

import re
from pathlib import Path

import pytest

from kafscale.cli.commands.spark.command import app
from kafscale.spark.source.options import NAMES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "spark.md").read_text()


def test_docs_list_exactly_the_source_options():
    rows = re.findall(r"^\| (`.+?`) \|", PAGE, re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    assert documented == NAMES


def test_docs_list_exactly_the_jobs():
    jobs = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert set(re.findall(r"kafscale spark ([a-z]+)", PAGE)) == jobs - {"check"}


@pytest.mark.parametrize("path", re.findall(r"\]\(\.\./(examples/\w+\.py)\)", PAGE))
def test_linked_examples_exist(path):
    assert (ROOT / path).is_file()
