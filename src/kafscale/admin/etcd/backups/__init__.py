"""Snapshots of etcd in a bucket."""
