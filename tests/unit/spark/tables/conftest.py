"""Tables of every format, and rows for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.spark.jobs.lake_tables import FORMATS, Tables


@pytest.fixture(params=FORMATS)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    made = Tables(request.param, tmp_path / "lake")
    yield made
    made.close()


@pytest.fixture(params=["iceberg", "delta"])
def changing_tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    """Those whose files can be replaced."""
    made = Tables(request.param, tmp_path / "lake")
    yield made
    made.close()
