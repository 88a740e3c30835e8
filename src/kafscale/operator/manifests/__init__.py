"""Manifests: pure functions from the desired state to Kubernetes objects. No I/O, no clock."""
