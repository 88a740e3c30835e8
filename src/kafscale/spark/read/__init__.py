"""Reads the bucket: its listing, offsets by timestamp, and the records of a task."""
