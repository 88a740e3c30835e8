"""The compiled part: it stays inside its arrays, and it is compiled no more often than needed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

import kafscale
from unit.spark.decoder_attack import attack

pytestmark = pytest.mark.timeout(180)  # It may compile, twice.

TESTS = Path(__file__).parents[3]
REPORT = """
from kafscale.spark import decoder_kernel
print(decoder_kernel.scan.stats.cache_path, len(decoder_kernel.scan.signatures))
"""


def run(*arguments, **environment):
    completed = subprocess.run(  # noqa: S603
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


@pytest.mark.parametrize("seed", range(4))
def test_no_canary_dies(seed):
    random = Random(seed)
    for _ in range(1000):
        attack(random)


def test_no_index_is_outside_of_its_array(tmp_path):
    run(
        "-m",
        "unit.spark.decoder_attack",
        PYTHONPATH=str(TESTS),
        NUMBA_BOUNDSCHECK="1",
        NUMBA_CACHE_DIR=str(tmp_path),
    )


def test_importing_the_decoder_compiles_nothing():
    assert run("-c", "import kafscale.spark.codec.decoder" + REPORT).split()[-1] == "0"


@pytest.fixture
def sealed(tmp_path):
    """The package, installed where nothing can be kept beside it."""
    package = tmp_path / "site" / "kafscale"
    shutil.copytree(
        Path(kafscale.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "spark" / "__pycache__").touch()
    return package.parent


def test_what_was_compiled_is_kept_for_the_user_where_the_package_cannot_be_written(
    sealed, tmp_path
):
    cache = tmp_path / "cache"
    told = run("-c", REPORT, PYTHONPATH=str(sealed), XDG_CACHE_HOME=str(cache), NUMBA_CACHE_DIR="")
    assert Path(told.split()[0]).is_relative_to(cache)


def test_the_decoder_does_without_a_cache_where_nothing_can_be_written(sealed, tmp_path):
    nowhere = tmp_path / "file"
    nowhere.touch()
    told = run(
        "-c", REPORT, PYTHONPATH=str(sealed), XDG_CACHE_HOME=str(nowhere), NUMBA_CACHE_DIR=""
    )
    assert told.split() == ["None", "0"]
