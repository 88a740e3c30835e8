"""docs/spark.md lists exactly the existing options, jobs and examples."""

import re
from pathlib import Path

import pytest

from kafscale.cli.commands.spark.command import app
from kafscale.spark.sink import options as sink
from kafscale.spark.source import options as source

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "spark.md").read_text()


@pytest.mark.parametrize(
    ("section", "names"), [("Reading topics", source.NAMES), ("Writing topics", sink.NAMES)]
)
def test_docs_list_exactly_the_options(section, names):
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?`) \|", text, re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    assert documented == names


def test_docs_list_exactly_the_jobs():
    jobs = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert set(re.findall(r"kafscale spark ([a-z]+)", PAGE)) == jobs - {"check"}


@pytest.mark.parametrize("path", re.findall(r"\]\(\.\./(examples/\w+\.py)\)", PAGE))
def test_linked_examples_exist(path):
    assert (ROOT / path).is_file()
