"""The etcd of a cluster: resolve or run it, keep it healthy, back it up and restore it."""
