"""Fixtures for tests of the lake job."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.selection import long_except
from unit.spark.jobs.lake_log import LakeLog
from unit.spark.jobs.lake_tables import FORMATS, Tables


@pytest.fixture
def log(tmp_path: Path) -> LakeLog:
    return LakeLog(tmp_path / "data")


# The tests of `spark.tables` run on all formats.
@pytest.fixture(params=long_except(FORMATS, "iceberg".__eq__))
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    opened = Tables(request.param, tmp_path / "lake")
    yield opened
    opened.close()
