"""Checks of the source tree itself: sizes, names, words, and tables that must agree with files.

import-linter checks layers, ruff style, mypy types; this module checks the rest. One test is one
rule and reports all offenders at once.
"""

import ast
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from kafscale.broker.requests.routes import ROUTES
from kafscale.protocol.apis import APIS
from services import syntax_tree

pytestmark = pytest.mark.timeout(120)  # Some of it reads every file that there is.

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "kafscale"
GENERATORS = ROOT / "generators"
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
FOLDER_MODULES_MAX = 18
VAGUE = re.compile(r"(Manager|Helper|Utils?|Impl)$")
REMINDER = re.compile(
    r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b"
)
UNCLEAR = re.compile(
    r"\b("
    r"somebody|nobody|anybody|everybody|someone|anyone|whoever|whom|whomever"
    r"|told|tells?(?!\()|telling|asked of|the laws?"
    r"|(?:a|an|the|one|each|every|last|next|first|another|second) looks?"
    r"|goes on|went on|is let in|are let in|for good|in vain|so many|so much|of its own accord"
    r"|afresh|anew|hush|seated"
    r")\b",
    re.IGNORECASE,
)
"""Words that hide who does what; see "Language" in CONTRIBUTING.md."""
MARKDOWN_COLUMNS_MAX = 100
FOREIGN_TEXT = {"LICENSE", "NOTICE", "package-lock.json", "requirements.lock", "go.sum"}
MACHINE = re.compile(
    "|".join(
        (
            r"(?<![\w.])/(?:home|root|work|Users)/\w",
            "py" + r"pi\.org",
            "python" + r"hosted\.org",
            "repo1?" + r"\.maven",
            "proxy" + r"\.golang\.org",
            "registry" + r"\.npmjs",
            "deb" + r"\.debian\.org",
        )
    )
)


def committed() -> list[Path]:
    """Every file that git tracks, or would once it is added."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def modules() -> list[Path]:
    return sorted([*SOURCE.rglob("*.py"), *GENERATORS.rglob("*.py")])


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@cache
def parsed_modules() -> list[tuple[Path, ast.Module]]:
    return [(path, syntax_tree.parse(path)) for path in modules()]


@pytest.fixture(scope="module", autouse=True)
def _clear_cache() -> Iterator[None]:
    yield
    parsed_modules.cache_clear()


def offenders(is_wrong: Callable[[Path, ast.Module], object]) -> list[str]:
    """The modules of which a rule says something, each with what it says."""
    checked = ((path, is_wrong(path, tree)) for path, tree in parsed_modules())
    return [f"{name_of(path)}: {problem}" for path, problem in checked if problem]


def test_modules_are_short():
    def too_long(path: Path, _tree: ast.Module) -> int:
        lines = len(path.read_text().splitlines())
        return lines if lines > MODULE_LINES_MAX else 0

    assert not offenders(too_long)


def test_modules_have_a_docstring():
    assert not offenders(lambda _path, tree: not ast.get_docstring(tree))


def test_functions_are_short():
    def too_long(_path: Path, tree: ast.Module) -> list[str]:
        return [
            function.name
            for function in functions(tree)
            if (function.end_lineno or 0) - function.lineno >= FUNCTION_LINES_MAX
        ]

    assert not offenders(too_long)


def test_class_names_are_specific():
    def vague(_path: Path, tree: ast.Module) -> list[str]:
        classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
        return [node.name for node in classes if VAGUE.search(node.name)]

    assert not offenders(vague)


def test_package_init_modules_only_export():
    allowed = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign)

    def has_code(path: Path, tree: ast.Module) -> bool:
        return path.name == "__init__.py" and not all(
            isinstance(node, allowed) for node in tree.body
        )

    assert not offenders(has_code)


def test_folders_are_not_flat():
    """Sub-packages show the architecture; only messages and handlers are one file per API."""
    counts = Counter(path.parent for path in modules() if path.name != "__init__.py")
    large = {name_of(folder) for folder, count in counts.items() if count > FOLDER_MODULES_MAX}
    assert large <= {"src/kafscale/protocol/messages", "src/kafscale/broker/handlers"}


def test_code_is_executed_from_text_in_one_place_only():
    calls = {
        name_of(path)
        for path, tree in parsed_modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"exec", "eval"}
    }
    assert calls == {"src/kafscale/protocol/codec/source.py"}


def test_only_the_command_line_reads_the_environment_and_only_config_its_variables():
    readers = {name_of(path) for path in modules() if "os.environ" in path.read_text()}
    assert readers <= {
        "src/kafscale/cli/main.py",
        "src/kafscale/cli/secrets.py",
        "src/kafscale/cli/commands/config.py",
        "src/kafscale/cli/commands/spark/command.py",
        "src/kafscale/spark/runtime/session.py",  # Where PySpark looks for Java and Python.
        "src/kafscale/observability/logging.py",  # NO_COLOR, which is the terminal's business.
    }


def test_every_message_is_in_the_table_and_the_table_has_no_other():
    messages = SOURCE / "protocol" / "messages"
    files = {path.stem for path in messages.glob("*.py")} - {"__init__"}
    assert files == {api.request.__module__.rpartition(".")[2] for api in APIS}
    assert files == {re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).lower() for api in APIS}


def test_tests_use_real_parts():
    for path in (ROOT / "tests").rglob("*.py"):
        assert "mock" + ".patch" not in path.read_text(), name_of(path)
        assert "monkey" + "patch.setattr" not in path.read_text(), name_of(path)


def test_nothing_is_left_for_later_in_the_code():
    for path in [*modules(), *(ROOT / "tests").rglob("*.py")]:
        assert not REMINDER.search(path.read_text()), name_of(path)


def test_no_file_knows_the_machine_that_it_was_written_on():
    for path in committed():
        text = path.read_text(encoding="utf-8", errors="ignore")
        found = MACHINE.search(text)
        assert found is None, f"{name_of(path)}: {found and found.group()}"


def test_text_says_who_does_what():
    found = [
        f"{name_of(path)}:{number}: {match.group()}"
        for path in committed()
        if path.name not in FOREIGN_TEXT and path != Path(__file__)
        for number, line in enumerate(path.read_text(errors="ignore").splitlines(), 1)
        if (match := UNCLEAR.search(line))
    ]
    assert not found, "\n".join(found)


def test_markdown_fits_its_columns():
    """Tables and code may be wider; their lines cannot be wrapped."""
    wide = []
    for page in (path for path in committed() if path.suffix == ".md"):
        in_code = False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            in_code ^= line.lstrip().startswith("```")
            is_text = not in_code and not line.lstrip().startswith("|") and line[:4] != " " * 4
            if is_text and len(line) > MARKDOWN_COLUMNS_MAX and " " in line.strip("*- "):
                wide.append(f"{name_of(page)}:{number}")
    assert not wide, "\n".join(wide)


def test_what_the_makefile_offers_is_what_the_readme_promises():
    targets = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    promised = set(re.findall(r"`?make ([a-z]+)", (ROOT / "README.md").read_text()))
    assert {"help", "setup", "run", "test", "check", "bench", "docs"} <= targets
    assert promised
    assert promised <= targets


def test_contributing_lists_what_ci_runs():
    runs = re.findall(r"^make \S+$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    line = re.search(r"CI runs `.ci/run`: (.*)\.", (ROOT / "CONTRIBUTING.md").read_text())
    assert line
    assert line[1] == ", ".join(f"`{run}`" for run in runs)


def test_code_maps_list_the_layers_of_the_import_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [re.findall(r"\w+", layer) for layer in contracts["contracts"][0]["layers"]]
    for page in (ROOT / "README.md", ROOT / "docs" / "architecture.md"):
        table = re.search(r"\| layer \| packages \|\n\|---\|---\|\n((?:\|.*\n)+)", page.read_text())
        assert table, name_of(page)
        rows = [re.findall(r"`(\w+)`", row) for row in table[1].splitlines()]
        assert rows == layers, name_of(page)


def test_architecture_page_shows_the_package_tree():
    page = (ROOT / "docs" / "architecture.md").read_text()
    text = page[page.index("    src/kafscale\n") :].partition("\n\n")[0]
    text = re.sub(r"\n    [│ ] {2,}", " ", text)  # Continuation lines.
    shown = {
        name: re.findall(r"\w+", names) for name, names in re.findall(r"[├└]── (\w+)(.*)", text)
    }
    expected = {
        package.parent.name: sorted(
            each.parent.name
            for each in package.parent.glob("*/__init__.py")
            if not each.parent.name.startswith("_")
        )
        for package in SOURCE.glob("*/__init__.py")
    }
    assert shown == expected


def test_the_readme_counts_the_apis_right():
    counts = re.findall(r"(\d+) APIs", (ROOT / "README.md").read_text())
    assert counts == [str(len(APIS)), str(len(ROUTES) + 1)]  # ApiVersions has no route.


def test_links_between_documents_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{name_of(page)} links to {target}"


def test_tests_that_documents_name_exist():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"`(tests/[\w./-]+)`", page.read_text()):
            assert (ROOT / target).exists(), f"{name_of(page)} names {target}"


def test_decisions_are_numbered_without_gaps():
    names = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [int(name[:4]) for name in names]
    assert numbers == list(range(1, len(numbers) + 1))
