"""Spark over the log: records as tables, straight from the bucket, and the jobs that keep it."""

from kafscale.spark.source.registration import register

__all__ = ["register"]
