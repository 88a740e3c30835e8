"""Scheduled snapshots of etcd."""
