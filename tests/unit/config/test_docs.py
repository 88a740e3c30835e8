"""docs/configuration.md is complete, and documents name existing variables only."""

import re
from pathlib import Path

from kafscale.config import SETTINGS, VARIABLES, docs

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_page_has_all_settings_defaults_and_variables():
    page = docs.page()
    for setting in SETTINGS:
        _, _, section = page.partition(f"### `{setting.path}`\n")
        section, _, _ = section.partition("\n#")
        shown = setting.type.show(setting.default)
        assert f"* default: {f'`{shown}`' if shown else 'empty'}\n" in section
        assert f"* takes: {setting.type.takes} * variable" in " ".join(section.split())
        assert ("* secret: " in section) == setting.secret
        assert docs.describe(setting) in " ".join(section.split())
    for variable in VARIABLES:
        assert f"\n| `{variable}` | " in page


def test_variables_in_the_documentation_exist():
    assert ROOT / "docs" / "configuration.md" in PAGES
    for page in PAGES:
        named = set(re.findall(r"KAFSCALE_[A-Z0-9_]*[A-Z0-9]", page.read_text(encoding="utf-8")))
        assert named <= set(VARIABLES), page


def test_descriptions_are_read_by_field():
    class Group:
        """The docstring of the class is not that of its first field."""

        first: int = 1
        """The first. In
        two lines."""
        second: int = 2
        third: int = 3
        """The third."""

    assert docs.descriptions(Group) == {"first": "The first. In two lines.", "third": "The third."}
