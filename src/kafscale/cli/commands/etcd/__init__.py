"""`kafscale etcd`."""
