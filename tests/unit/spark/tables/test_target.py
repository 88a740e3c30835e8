"""Which table is meant by which settings."""

import pytest

from kafscale.errors import ConfigError, InvalidRequestError
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.target import TableFormat, Target


def name(target: Target, topic: str = "shop.orders-eu", **how: bool) -> str:
    return target(topic, time_column="timestamp", **how).name


@pytest.mark.parametrize("table_format", [TableFormat.DELTA, TableFormat.PARQUET])
def test_directories_are_called_like_topics(tmp_path, table_format):
    target = Target(table_format=table_format, path=f"{tmp_path}/")
    assert name(target) == f"{tmp_path}/shop.orders-eu"
    assert name(target, is_dead=True) == f"{tmp_path}/shop.orders-eu_dead_letters"
    named = Target(table_format=table_format, path=str(tmp_path), table="raw/{topic}/v1")
    assert name(named) == f"{tmp_path}/raw/shop.orders-eu/v1"


def test_iceberg_makes_a_catalog_of_its_own(tmp_path):
    target = Target(table_format=TableFormat.ICEBERG, path=str(tmp_path / "lake"))
    assert name(target) == "kafscale.shop_orders_eu"
    assert (tmp_path / "lake" / "catalog.db").exists()
    assert target("a", time_column="t").load() is None
    target._catalog.close()


def test_settings_that_cannot_be(tmp_path):
    for how in (
        {"table_format": TableFormat.ICEBERG},
        {"table_format": TableFormat.DELTA},
        {"table_format": TableFormat.PARQUET, "path": "lake", "catalog": "prod"},
    ):
        with pytest.raises(InvalidRequestError):
            Target(**how)
    bucket = Target(table_format=TableFormat.ICEBERG, path="s3://lake/tables")
    with pytest.raises(InvalidRequestError, match="need a catalog"):
        name(bucket)
    flat = Target(table_format=TableFormat.ICEBERG, path=str(tmp_path), table="{topic}")
    with pytest.raises(InvalidRequestError, match="in a namespace"):
        name(flat, "orders")
    unknown = Target(
        table_format=TableFormat.ICEBERG, path=str(tmp_path), properties={"type": "none such"}
    )
    with pytest.raises(ConfigError, match="the catalog cannot be used"):
        name(unknown)


def test_secrets_are_not_shown():
    secret = {"s3.secret-access-key": "hush"}
    target = Target(table_format=TableFormat.DELTA, path="s3://lake", properties=secret)
    assert "hush" not in repr(target)
    assert "hush" not in repr(TableFilesystem.of("s3://lake", secret))
