"""`kafscale user`."""
