"""`kafscale acl`."""
