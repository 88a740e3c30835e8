"""Reads of segments through the block cache."""
