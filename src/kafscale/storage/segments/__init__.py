"""Segments: rolling the tail into them, retention, and swaps."""
