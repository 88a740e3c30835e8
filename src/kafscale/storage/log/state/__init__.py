"""The in-memory state of a log: tail, segments, producers, leader epochs. Pure."""
