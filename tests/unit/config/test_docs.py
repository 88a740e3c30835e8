"""Documents name existing variables only."""

import re
from pathlib import Path

from kafscale.config import VARIABLES

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_variables_in_the_documentation_exist():
    assert ROOT / "docs" / "configuration.md" in PAGES
    for page in PAGES:
        named = set(re.findall(r"KAFSCALE_[A-Z0-9_]*[A-Z0-9]", page.read_text(encoding="utf-8")))
        assert named <= set(VARIABLES), page
