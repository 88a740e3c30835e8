"""Tests of memory safety and of the compilation cache of the decoder kernel."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

import kafscale
from unit.spark.codec.kernel_fuzzer import fuzz_kernel

pytestmark = pytest.mark.timeout(180)  # Some tests compile the kernel, twice.

TESTS = Path(__file__).parents[3]
REPORT_CACHE = """
from kafscale.spark.codec import decoder_kernel
print(decoder_kernel.scan.stats.cache_path, len(decoder_kernel.scan.signatures))
"""


def run_python(*arguments, **environment):
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
def test_kernel_writes_only_inside_its_arrays(seed):
    random = Random(seed)
    for _ in range(1000):
        fuzz_kernel(random)


@pytest.mark.long
def test_kernel_passes_numba_bounds_checks(tmp_path):
    run_python(
        "-m",
        "unit.spark.codec.kernel_fuzzer",
        PYTHONPATH=str(TESTS),
        NUMBA_BOUNDSCHECK="1",
        NUMBA_CACHE_DIR=str(tmp_path),
    )


def test_importing_the_decoder_compiles_nothing():
    assert run_python("-c", "import kafscale.spark.codec.decoder" + REPORT_CACHE).split()[-1] == "0"


@pytest.fixture
def read_only_site(tmp_path):
    """A copy of the package, in which numba cannot create `__pycache__` beside the kernel."""
    package = tmp_path / "site" / "kafscale"
    shutil.copytree(
        Path(kafscale.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "spark" / "codec" / "__pycache__").touch()
    return package.parent


def test_kernel_is_cached_in_the_user_directory_if_the_package_is_read_only(
    read_only_site, tmp_path
):
    cache = tmp_path / "cache"
    output = run_python(
        "-c",
        REPORT_CACHE,
        PYTHONPATH=str(read_only_site),
        XDG_CACHE_HOME=str(cache),
        NUMBA_CACHE_DIR="",
    )
    assert Path(output.split()[0]).is_relative_to(cache)


def test_kernel_works_without_a_cache_if_nothing_is_writable(read_only_site, tmp_path):
    not_a_directory = tmp_path / "file"
    not_a_directory.touch()
    output = run_python(
        "-c",
        REPORT_CACHE,
        PYTHONPATH=str(read_only_site),
        XDG_CACHE_HOME=str(not_a_directory),
        NUMBA_CACHE_DIR="",
    )
    assert output.split() == ["None", "0"]
