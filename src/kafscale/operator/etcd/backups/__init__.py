"""Scheduled snapshots of a managed etcd."""
