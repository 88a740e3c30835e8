"""`kafscale cluster`."""
