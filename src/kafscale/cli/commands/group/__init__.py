"""`kafscale group`."""
