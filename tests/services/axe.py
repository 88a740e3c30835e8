"""Accessibility checks with axe-core, run inside a page.

    found = violations(page)
    assert found == []

`make web` installs axe-core; the component tests use it as well.
"""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SCRIPT = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def is_available() -> bool:
    return SCRIPT.is_file()


def violations(page: Page, part: str = "html") -> list[str]:
    """The violations of a part of the current page, one line per element.

    The content security policy forbids injected scripts, so the window must be opened with
    `bypass_csp=True`.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(SCRIPT.read_text())
    options = {"runOnly": RULES, "resultTypes": ["violations"]}
    result: dict[str, Any] = page.evaluate(
        "([part, options]) => axe.run(part, options)", [part, options]
    )
    return [
        f"{violation['id']}: {node['html'][:300]} ({' '.join(node['failureSummary'].split())})"
        for violation in result["violations"]
        for node in violation["nodes"]
    ]
