"""`kafscale quota`."""
