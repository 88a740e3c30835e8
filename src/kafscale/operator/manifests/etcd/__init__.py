"""Manifests of a managed etcd. Pure."""
