"""Registers the data source `kafscale` in a Spark session, with the S3 settings of the session."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kafscale.spark.source.session_defaults import OUR_PREFIX, S3A_PREFIX, SessionDefaults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHDOWN_SETTING: Final = "spark.sql.python.filterPushdown.enabled"


def register(spark: "SparkSession") -> None:
    """Register `format("kafscale")`, for batches and for streams.

    The S3 settings of the session are copied; register again after changing them. The registered
    class is a new one, so that it is pickled with these settings. Spark's setting for filter
    pushdown is turned on, unless the session sets it.
    """
    from kafscale.spark.source.data_source import KafscaleSource  # noqa: PLC0415 - it loads Spark and Arrow.

    class Source(KafscaleSource):
        defaults = SessionDefaults.of(session_settings(spark))

    spark.dataSource.register(Source)
    if spark.conf.get(PUSHDOWN_SETTING, None) is None:
        spark.conf.set(PUSHDOWN_SETTING, "true")


def session_settings(spark: "SparkSession") -> Mapping[str, str]:
    """Return the S3 settings of the session, both Hadoop's and ours."""
    settings = {
        name: value
        for name, value in spark.conf.getAll.items()
        if name.removeprefix("spark.hadoop.").startswith(S3A_PREFIX) or name.startswith(OUR_PREFIX)
    }
    return _hadoop_settings(spark) | settings


def _hadoop_settings(spark: "SparkSession") -> dict[str, str]:
    """Return Hadoop's S3 settings from its own files and from the driver's environment."""
    context = getattr(spark, "sparkContext", None)
    if context is None:
        return {}  # A Spark Connect session.
    properties = context._jsc.hadoopConfiguration().getPropsWithPrefix(S3A_PREFIX)  # noqa: SLF001
    return {S3A_PREFIX + name: value for name, value in dict(properties).items()}
