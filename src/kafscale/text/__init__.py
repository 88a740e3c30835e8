"""Numbers, sizes, durations and times, formatted for people."""
