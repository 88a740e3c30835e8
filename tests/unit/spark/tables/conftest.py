"""Tables of every format."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.spark.jobs.lake_tables import FORMATS, Tables


@pytest.fixture(params=FORMATS)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    created = Tables(request.param, tmp_path / "lake")
    yield created
    created.close()


@pytest.fixture(params=["iceberg", "delta"])
def changing_tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    """Tables whose files can be replaced."""
    created = Tables(request.param, tmp_path / "lake")
    yield created
    created.close()
