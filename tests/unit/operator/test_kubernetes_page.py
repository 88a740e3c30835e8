"""docs/kubernetes.md lists all conditions and events that the operator reports."""

import re
from pathlib import Path

import pytest

from unit.operator.reported import conditions, events

PAGE = (Path(__file__).parents[3] / "docs" / "kubernetes.md").read_text()
SECTIONS = {"cluster": "### Conditions of a cluster", "topic": "### Conditions of a topic"}


def rows(heading):
    """The cells of the table below a heading, row by row."""
    _, _, after = PAGE.partition(f"\n{heading}\n")
    below = re.split(r"^#+ ", after, maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in below.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def names_in(cell):
    return re.findall(r"`(\w+)`", cell)


@pytest.mark.parametrize("kind", SECTIONS)
def test_every_condition_has_its_row(kind):
    documented = {
        (type_, status, reason)
        for of, status, reasons, _ in rows(SECTIONS[kind])
        for type_ in names_in(of)
        for reason in names_in(reasons)
    }
    assert documented == conditions(kind)


@pytest.mark.parametrize("kind", SECTIONS)
def test_every_event_has_its_row(kind):
    documented = {
        word for names, of, _ in rows("## Events") if of.endswith(kind) for word in names_in(names)
    }
    assert documented == events(kind)
