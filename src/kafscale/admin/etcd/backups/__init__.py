"""Snapshots of etcd in a bucket: how they are named, written, proven, listed and read."""
