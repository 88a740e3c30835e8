"""`kafscale topic`."""
