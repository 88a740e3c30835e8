"""Executor: reads a task's offset range from the bucket."""
