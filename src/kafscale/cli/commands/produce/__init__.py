"""`kafscale produce`."""
