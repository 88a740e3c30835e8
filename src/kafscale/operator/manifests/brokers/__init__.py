"""Manifests of the brokers of a cluster. Pure."""
