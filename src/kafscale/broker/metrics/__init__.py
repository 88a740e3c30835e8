"""Metrics of partition logs and consumer groups."""
