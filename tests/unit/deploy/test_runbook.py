"""The runbook has exactly one section for each alert, with its severity."""

import re

from services.for_each import for_each
from unit.deploy.chart import ROOT, read

PAGE = (ROOT / "docs" / "operations" / "runbook.md").read_text()
SECTIONS = dict(re.findall(r"^### (\w+)\n\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
RULES = {
    rule["alert"]: rule for group in read("files/alerts.yaml")["groups"] for rule in group["rules"]
}


def test_sections_are_in_the_order_of_alerts():
    assert list(SECTIONS) == list(RULES)


@for_each(RULES)
def test_section_has_severity_and_instructions(name):
    severity = RULES[name]["labels"]["severity"]
    assert SECTIONS[name].startswith(f"*{severity}.* ")
    assert len(SECTIONS[name]) > 150


def test_links_between_alerts_exist():
    linked = re.findall(r"\[(Kafscale\w+)\]\(#(\w+)\)", PAGE)
    assert linked
    for name, anchor in linked:
        assert name in RULES
        assert anchor == name.lower()
