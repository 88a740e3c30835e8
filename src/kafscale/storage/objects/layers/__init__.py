"""Decorators around an object store: retries, limits, metrics, a replica."""
