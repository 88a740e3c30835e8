"""Tests of targets: table names, validation and secrecy."""

import pytest

from kafscale.errors import ConfigError, InvalidRequestError
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.target import TableFormat, Target


def name(target: Target, topic: str = "shop.orders-eu", **options: bool) -> str:
    return target(topic, time_column="timestamp", **options).name


@pytest.mark.parametrize("table_format", [TableFormat.DELTA, TableFormat.PARQUET])
def test_directories_are_named_after_topics(tmp_path, table_format):
    target = Target(table_format=table_format, path=f"{tmp_path}/")
    assert name(target) == f"{tmp_path}/shop.orders-eu"
    assert name(target, is_dead=True) == f"{tmp_path}/shop.orders-eu_dead_letters"
    named = Target(table_format=table_format, path=str(tmp_path), table="raw/{topic}/v1")
    assert name(named) == f"{tmp_path}/raw/shop.orders-eu/v1"


def test_iceberg_creates_a_local_catalog(tmp_path):
    target = Target(table_format=TableFormat.ICEBERG, path=str(tmp_path / "lake"))
    assert name(target) == "kafscale.shop_orders_eu"
    assert (tmp_path / "lake" / "catalog.db").exists()
    assert target("a", time_column="t").load() is None
    target._catalog.close()


def test_invalid_settings_are_rejected(tmp_path):
    for settings in (
        {"table_format": TableFormat.ICEBERG},
        {"table_format": TableFormat.DELTA},
        {"table_format": TableFormat.PARQUET, "path": "lake", "catalog": "prod"},
    ):
        with pytest.raises(InvalidRequestError):
            Target(**settings)
    bucket = Target(table_format=TableFormat.ICEBERG, path="s3://lake/tables")
    with pytest.raises(InvalidRequestError, match="need a catalog"):
        name(bucket)
    flat = Target(table_format=TableFormat.ICEBERG, path=str(tmp_path), table="{topic}")
    with pytest.raises(InvalidRequestError, match="must be in a namespace"):
        name(flat, "orders")
    unknown = Target(
        table_format=TableFormat.ICEBERG, path=str(tmp_path), properties={"type": "none such"}
    )
    with pytest.raises(ConfigError, match="cannot load the catalog"):
        name(unknown)


def test_repr_shows_no_secrets():
    secret = {"s3.secret-access-key": "hidden"}
    target = Target(table_format=TableFormat.DELTA, path="s3://lake", properties=secret)
    assert "hidden" not in repr(target)
    assert "hidden" not in repr(TableFilesystem.of("s3://lake", secret))
