"""Opens logs from the bucket: segments, then the WAL."""
