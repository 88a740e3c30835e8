"""Collectors that read metrics from logs and groups."""
