"""The committed files equal the generated ones."""

from pathlib import Path

from generators.__main__ import write_files
from generators.files import generated_files

ROOT = Path(__file__).parents[3]
FILES = generated_files()
SHARED_DIRECTORIES = {"docs", "web/src/api", "deploy/helm/kafscale/files"}
"""Directories that have other files too."""


def test_committed_files_are_up_to_date():
    stale = [name for name, text in FILES.items() if (ROOT / name).read_text() != text]
    assert not stale, "run `make generate`"


def test_there_are_no_outdated_files():
    directories = {str(Path(name).parent) for name in FILES} - SHARED_DIRECTORIES
    committed = [path for each in directories for path in (ROOT / each).glob("*.*")]
    generated = [*map(ROOT.joinpath, FILES), ROOT / "api" / "v1alpha1" / "README.md"]
    assert set(committed) <= set(generated)


def test_only_stale_files_are_written(tmp_path, capsys):
    write_files(tmp_path, "docs")
    pages = {name: text for name, text in FILES.items() if name.startswith("docs/")}
    assert {f"docs/{path.name}": path.read_text() for path in tmp_path.glob("*/*")} == pages
    (tmp_path / "docs" / "metrics.md").write_text("old")
    capsys.readouterr()
    write_files(tmp_path, "docs")
    assert capsys.readouterr().out == (
        "wrote docs/metrics.md\n5 of 6 generated files were up to date\n"
    )
    assert (tmp_path / "docs" / "metrics.md").read_text() == pages["docs/metrics.md"]
