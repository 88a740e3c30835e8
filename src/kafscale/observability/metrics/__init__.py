"""Metric declarations, counters and the Prometheus text format."""
