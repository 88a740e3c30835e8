"""Driver: what the bucket holds, as offset ranges and tasks."""
