"""Offset maps, offset bounds, tasks and filter pushdown. Pure."""
