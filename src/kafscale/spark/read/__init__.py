"""Reads the slices of a task on an executor."""
