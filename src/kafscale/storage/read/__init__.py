"""Reads of logs, from tails and from segments through the block cache."""
