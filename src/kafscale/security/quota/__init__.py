"""Quota entities, types and limits."""
