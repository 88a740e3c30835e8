"""`kafscale docs`: the generated pages equal the committed ones."""

from pathlib import Path

import pytest

from kafscale.cli.commands.docs import PAGES

DOCS = Path(__file__).parents[4] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_committed_page_is_up_to_date(name):
    committed = (DOCS / name).read_text(encoding="utf-8")
    assert committed == PAGES[name](), "run `make docs`"


def test_generate_writes_all_pages(kafscale):
    Path("docs").mkdir()
    result = kafscale("docs", "generate")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [f"wrote docs/{name}" for name in PAGES]
    assert {page.name: page.read_text() for page in Path("docs").iterdir()} == {
        name: text() for name, text in PAGES.items()
    }
    assert kafscale("docs", "generate").stdout == (
        f"all {len(PAGES)} generated pages are up to date\n"
    )


def test_check_reports_stale_pages_and_writes_nothing(kafscale):
    Path("pages").mkdir()
    kafscale("docs", "generate", "-d", "pages")
    stale = Path("pages/metrics.md")
    stale.write_text("old")
    result = kafscale("docs", "generate", "--directory", "pages", "--check")
    assert (result.exit_code, result.stderr) == (1, "error: pages/metrics.md is out of date\n")
    assert stale.read_text() == "old"


def test_generate_does_not_create_the_directory(kafscale):
    result = kafscale("docs", "generate")
    assert result.exit_code == 1
    assert "there is no directory docs;" in result.stderr
    assert not Path("docs").exists()
