"""Members of etcd, and backups of its content."""
