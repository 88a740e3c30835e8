"""`kafscale segment`."""
