"""Making the source `kafscale` known to a session, with what the session knows of buckets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kafscale.spark.source.session_defaults import OUR_PREFIX, S3A_PREFIX, SessionDefaults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILTERS_SWITCH: Final = "spark.sql.python.filterPushdown.enabled"


def register(spark: "SparkSession") -> None:
    """Make `format("kafscale")` known, for batches and for streams.

    What the session says about S3 is taken along as it is now: whoever changes it registers again.
    The class that is registered is a new one, so that it is pickled with what it was given. Spark's
    switch for filters is put on, unless somebody has put it off.
    """
    from kafscale.spark.source.data_source import KafscaleSource  # noqa: PLC0415 - it loads Spark and Arrow.

    class Source(KafscaleSource):
        defaults = SessionDefaults.of(settings_of(spark))

    spark.dataSource.register(Source)
    if spark.conf.get(FILTERS_SWITCH, None) is None:
        spark.conf.set(FILTERS_SWITCH, "true")


def settings_of(spark: "SparkSession") -> Mapping[str, str]:
    """All that the session says about S3, to Hadoop and to us."""
    said = {
        name: value
        for name, value in spark.conf.getAll.items()
        if name.removeprefix("spark.hadoop.").startswith(S3A_PREFIX) or name.startswith(OUR_PREFIX)
    }
    return _hadoop_settings(spark) | said


def _hadoop_settings(spark: "SparkSession") -> dict[str, str]:
    """What Hadoop was told beside: by files of its own, and by the driver's environment."""
    context = getattr(spark, "sparkContext", None)
    if context is None:
        return {}  # The session is a remote one.
    found = context._jsc.hadoopConfiguration().getPropsWithPrefix(S3A_PREFIX)  # noqa: SLF001
    return {S3A_PREFIX + name: value for name, value in dict(found).items()}
