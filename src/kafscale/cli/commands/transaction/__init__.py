"""`kafscale transaction`."""
