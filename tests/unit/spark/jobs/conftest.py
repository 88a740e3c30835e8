"""Fixtures for tests of the lake job."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.spark.jobs.lake_log import LakeLog
from unit.spark.jobs.lake_tables import FORMATS, Tables


@pytest.fixture
def log(tmp_path: Path) -> LakeLog:
    return LakeLog(tmp_path / "data")


@pytest.fixture(params=FORMATS)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    opened = Tables(request.param, tmp_path / "lake")
    yield opened
    opened.close()
