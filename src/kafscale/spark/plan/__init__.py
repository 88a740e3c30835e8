"""Offset ranges, tasks and pushed-down filters. Pure."""
