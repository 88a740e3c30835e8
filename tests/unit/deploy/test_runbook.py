"""The runbook has a section for every alert, under its name, with its severity; and no other."""

import re

import pytest

from unit.deploy.chart import ROOT, read

PAGE = (ROOT / "docs" / "operations" / "runbook.md").read_text()
SECTIONS = dict(re.findall(r"^### (\w+)\n\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
RULES = {
    rule["alert"]: rule for group in read("files/alerts.yaml")["groups"] for rule in group["rules"]
}


def test_every_alert_has_its_section_in_order():
    assert list(SECTIONS) == list(RULES)


@pytest.mark.parametrize("name", RULES)
def test_a_section_says_how_urgent_it_is_and_what_to_do(name):
    severity = RULES[name]["labels"]["severity"]
    assert SECTIONS[name].startswith(f"*{severity}.* ")
    assert len(SECTIONS[name]) > 150


def test_what_leads_to_another_alert_leads_to_one_that_there_is():
    linked = re.findall(r"\[(Kafscale\w+)\]\(#(\w+)\)", PAGE)
    assert linked
    for name, anchor in linked:
        assert name in RULES
        assert anchor == name.lower()
