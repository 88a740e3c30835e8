"""Manifests: pure functions from what is wanted to what Kubernetes is told. No I/O, no clock."""
