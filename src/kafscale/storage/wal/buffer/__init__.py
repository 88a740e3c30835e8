"""Batches that wait for a WAL object, and when it is sealed. Pure."""
