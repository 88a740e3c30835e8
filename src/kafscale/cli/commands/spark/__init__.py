"""`kafscale spark`."""
