"""`kafscale consume`."""
