"""Kubernetes without containers: a real control plane, and what tests need around it.

`control_plane` runs the API server and the controllers, `metrics_api` serves metrics to
autoscalers, `helm` runs Helm, and `namespaces` isolates all of it in Linux namespaces.
"""
