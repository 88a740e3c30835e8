"""Spark jobs that maintain logs, copy them and write them to tables."""
