"""Spark: a data source that reads the bucket, SQL, and the jobs that maintain and export logs."""

from kafscale.spark.source.registration import register

__all__ = ["register"]
