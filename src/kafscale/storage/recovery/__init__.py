"""Recovery: opening logs from segments and WAL streams, and scanning a bucket."""
