"""Whether everybody can use a page: axe-core, run inside of it.

    found = violations(page)
    assert found == []

It is a package that the pages' own tests use, too: `make web` installs it.
"""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SCRIPT = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def is_available() -> bool:
    return SCRIPT.is_file()


def violations(page: Page) -> list[str]:
    """What is wrong with the page as it is now, a line for each element.

    The content security policy forbids scripts that are put in; so the window has to be one that
    was opened with `bypass_csp=True`.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(SCRIPT.read_text())
    options = {"runOnly": RULES, "resultTypes": ["violations"]}
    found: dict[str, Any] = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{violation['id']}: {node['html'][:300]} ({' '.join(node['failureSummary'].split())})"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]
